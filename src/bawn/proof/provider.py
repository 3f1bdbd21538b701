"""The providers of the lab, scripted: what a request for a model's next turn is answered with. Pure.

The script stands in the conversation itself: each line `RUN: COMMAND` of what the person said is a tool
call, one a turn, in order; then comes a last message with what each tool gave back. So a marker that
only a tool could make is in the answer of a run whose loop is whole, and in no other.

Anthropic Messages and OpenAI Responses, streaming as their real clients ask for it.
"""

import json
from collections.abc import Callable, Iterable

from bawn.typed import Any, NamedTuple

MARK = "RUN: "
MODEL = "lab-1"
_USAGE = {"input_tokens": 1, "output_tokens": 1}


class Answer(NamedTuple):
    status: int
    kind: str  # of the content
    body: bytes


class Turn(NamedTuple):
    """What the model does next: a command of the script, or its last words."""

    command: str
    words: str


def answer(method: str, path: str, body: bytes) -> Answer:
    """For any request: one that no client of a model would make is answered with 404."""
    route = path.partition("?")[0]
    try:
        asked = json.loads(body) if body else {}
    except ValueError:
        return _json(400, {"error": "not JSON"})
    if method == "POST" and route.endswith("/v1/messages"):
        return _anthropic(asked)
    if method == "POST" and route.endswith("/count_tokens"):
        return _json(200, {"input_tokens": 1})
    if method == "POST" and route.endswith("/responses"):
        return _openai(asked)
    return _json(404, {"error": {"type": "not_found_error", "message": f"{method} {route}"}})


def _turn(said: Iterable[str], results: list[str]) -> Turn:
    lines = [line.strip() for text in said for line in text.splitlines()]
    commands = [line.removeprefix(MARK) for line in lines if line.startswith(MARK)]
    if len(results) < len(commands):
        return Turn(commands[len(results)], "")
    return Turn("", "\n".join(["The tools gave:", *results]))


# --- Anthropic Messages ---


def _anthropic(asked: dict[str, Any]) -> Answer:
    said, results = [], []
    for message in asked.get("messages", []):
        content = message.get("content", "")
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if part.get("type") == "tool_result":
                results.append(_text(part.get("content", "")))
            elif part.get("type") == "text" and message.get("role") == "user":
                said.append(part.get("text", ""))
    turn = _turn(said, results)
    tools = {tool.get("name") for tool in asked.get("tools", [])}
    block: dict[str, Any]
    if turn.command and "Bash" in tools:
        given = {"command": turn.command, "description": "a step of the script"}
        block = {"type": "tool_use", "id": f"toolu_{len(results)}", "name": "Bash", "input": given}
    else:  # without tools it is asked for a title, or the like
        block = {"type": "text", "text": turn.words if tools else "a script"}
    stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
    message = {
        "id": f"msg_{len(results)}", "type": "message", "role": "assistant", "model": MODEL,
        "content": [block], "stop_reason": stop, "stop_sequence": None, "usage": _USAGE,
    }  # fmt: skip
    if not asked.get("stream"):
        return _json(200, message)
    empty = {**block, "input": {}} if stop == "tool_use" else {**block, "text": ""}
    delta = (
        {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        if stop == "tool_use"
        else {"type": "text_delta", "text": block["text"]}
    )
    return _events([
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": _USAGE},
        {"type": "message_stop"},
    ])  # fmt: skip


# --- OpenAI Responses ---

# The shell tools that codex has had, and how each takes a command.
_SHELLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["sh", "-c", command]},
}


def _openai(asked: dict[str, Any]) -> Answer:
    said, results = [], []
    given = asked.get("input", [])
    for one in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        if one.get("type") == "function_call_output":
            results.append(_text(one.get("output", "")))
        elif one.get("role") == "user":
            said.append(_text(one.get("content", "")))
    turn = _turn(said, results)
    tools = [tool.get("name") for tool in asked.get("tools", [])]
    shell = next((name for name in _SHELLS if name in tools), "")
    item: dict[str, Any]
    if turn.command and shell:
        item = {
            "type": "function_call", "id": f"fc_{len(results)}", "call_id": f"call_{len(results)}",
            "name": shell, "arguments": json.dumps(_SHELLS[shell](turn.command)),
        }  # fmt: skip
    else:
        words = [{"type": "output_text", "text": turn.words or f"no shell among {tools}", "annotations": []}]
        item = {"type": "message", "id": f"msg_{len(results)}", "role": "assistant", "content": words}
    usage = {
        **_USAGE, "total_tokens": 2, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    response = {"id": f"resp_{len(results)}", "object": "response", "model": MODEL, "usage": usage}
    if not asked.get("stream"):
        return _json(200, {**response, "status": "completed", "output": [item]})
    return _events([
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**response, "status": "completed", "output": [item]}},
    ])  # fmt: skip


def _text(content: Any) -> str:
    """Of a text, or of a list of parts with texts."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


def _json(status: int, data: Any) -> Answer:
    return Answer(status, "application/json", json.dumps(data).encode())


def _events(events: list[dict[str, Any]]) -> Answer:
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return Answer(200, "text/event-stream", "".join(lines).encode())
