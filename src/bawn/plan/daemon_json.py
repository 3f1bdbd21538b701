"""The edit of docker's daemon.json: one runtime entry put in, every other byte kept. Pure."""

import json

from bawn.errors import HostError
from bawn.typed import Any, NamedTuple

RUNTIME = "runsc"
_SPACE = " \t\r\n"


class Edit(NamedTuple):
    """Old and new text of the file; `old` None where there was no file."""

    old: str | None
    new: str

    @property
    def changes(self) -> bool:
        return self.old != self.new


def register(text: str | None, path: str, program: str, args: tuple[str, ...] = ()) -> Edit:
    """daemon.json with the runtime registered.

    Raises HostError for what is not a JSON object, has a key twice, or registers another runsc.
    """
    wanted: dict[str, Any] = {"path": program} | ({"runtimeArgs": list(args)} if args else {})
    if text is None or not text.strip():
        return Edit(text, json.dumps({"runtimes": {RUNTIME: wanted}}, indent=4) + "\n")
    data = _load(text, path)
    runtimes = data.get("runtimes", {})
    if not isinstance(runtimes, dict):
        raise HostError(f"{path}: runtimes is {runtimes!r}; wanted an object", f"mend {path}")
    present = runtimes.get(RUNTIME)
    if present == wanted:
        return Edit(text, text)
    if present is not None:
        raise HostError(
            f"{path} registers another {RUNTIME}: {json.dumps(present)}; "
            f"bawn would write {json.dumps(wanted)}",
            f"remove that entry from {path} yourself, if nothing else needs it",
        )
    top = _members(text, text.index("{"))
    where = next((member for member in top if member[0] == "runtimes"), None)
    if where is None:
        new = _insert(text, text.index("{"), "runtimes", {RUNTIME: wanted})
    else:
        new = _insert(text, where[2], RUNTIME, wanted)
    if json.loads(new) != {**data, "runtimes": {**runtimes, RUNTIME: wanted}}:
        raise HostError(f"{path} cannot be edited without touching the rest", f"register {RUNTIME} by hand")
    return Edit(text, new)


def _load(text: str, path: str) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise HostError(f"{path} has the key {twice[0]!r} twice", f"mend {path}")
        return dict(pairs)

    try:
        data = json.loads(text, object_pairs_hook=unique)
    except ValueError as error:
        raise HostError(f"{path} is not JSON: {error}", f"mend {path}") from None
    except RecursionError:
        raise HostError(f"{path} is nested too deeply", f"mend {path}") from None
    if not isinstance(data, dict):
        raise HostError(f"{path} is not a JSON object", f"mend {path}")
    return data


def _members(text: str, at: int) -> list[tuple[str, int, int, int]]:
    """(key, start of the key, start of the value, end of the value) of the object that opens at
    `at`, in valid JSON."""
    decode = json.JSONDecoder().raw_decode
    found = []
    at = _skip(text, at + 1)
    while text[at] != "}":
        start = at
        key, at = decode(text, at)
        value = _skip(text, _skip(text, at) + 1)  # over the colon
        _, end = decode(text, value)
        found.append((key, start, value, end))
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
    return found


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


def _insert(text: str, at: int, key: str, value: dict[str, Any]) -> str:
    """The text with one more member, the last, in the object that opens at `at`: laid out like the
    members before it."""
    members = _members(text, at)
    line_end = "\r\n" if "\r\n" in text else "\n"
    margin = _margin(text, at)
    if members:
        before = text[at + 1 : members[0][1]]  # what stands between { and the first key
        end, opening, closing = members[-1][3], "," + (before if "\n" in before else " "), ""
        inside = before.rpartition("\n")[2] if "\n" in before else ""
        spread = "\n" in before
    else:
        spread = "\n" in text
        inside = margin + (_unit(text) if spread else "")
        end = at + 1
        rest = _skip(text, end)
        opening, closing = (line_end + inside, line_end + margin) if spread else ("", "")
        text = text[:end] + text[rest:]
    shown = json.dumps(value, indent=_unit(text) if spread else None)
    shown = shown.replace("\n", line_end + inside)
    return text[:end] + opening + json.dumps(key) + ": " + shown + closing + text[end:]


def _margin(text: str, at: int) -> str:
    """The space that the line of `at` begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """One step of indentation: that of the first indented line, else four spaces."""
    for line in text.splitlines():
        body = line.lstrip(" \t")
        if body and body != line:
            return line[: len(line) - len(body)]
    return "    "
