"""The edit of JSON and JSON5: one value replaced, or one member put in; all else stays. Pure."""

import json

from bawn.edit.json_tree import Node, read, skip
from bawn.edit.text import Set, decode, indent_unit, line_end, margin, same, with_value
from bawn.errors import HostError
from bawn.typed import Any


def edit(data: bytes, name: str, changes: tuple[Set, ...]) -> bytes:
    """`data` with the changes. Raises HostError for what is not JSON5, or cannot be edited in place."""
    mark, text = decode(data, name)
    for change in changes:
        text = put(text, name, change)
    return (mark + text).encode()


def put(text: str, name: str, change: Set) -> str:
    """The text with one change, read again. Raises HostError."""
    if not text.strip():
        value: Any = with_value({}, change.path, change.value)
        return json.dumps(value, indent=4) + "\n"
    root = read(text, name)
    node, path = root, change.path
    while True:
        here = ".".join(change.path[: len(change.path) - len(path)]) or "the document"
        if node.kind != "object":
            raise HostError(f"{name}: {here} is no object, so it has no {path[0]}", f"mend {name}")
        found = [member for key, _, member in node.members if key == path[0]]
        if len(found) > 1:
            raise HostError(f"{name}: {path[0]} stands twice in {here}", f"mend {name}")
        inner = _nested(path[1:], change.value)
        if not found:
            new = _insert(text, node, path[0], inner)
            break
        if len(path) == 1 or (found[0].kind == "scalar" and found[0].value is None):
            if same(found[0].data(), inner):
                return text
            new = text[: found[0].start] + _shown(text, node, inner) + text[found[0].end :]
            break
        node, path = found[0], path[1:]
    if not same(read(new, name).data(), with_value(root.data(), change.path, change.value)):
        raise HostError(
            f"{name}: {change.key} cannot be set without touching the rest", f"set {change.key} by hand"
        )
    return new


def _nested(path: tuple[str, ...], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _spread(text: str, node: Node) -> bool:
    """The members stand on lines of their own; an empty object is as the whole text is."""
    if not node.members:
        return "\n" in text
    return "\n" in text[node.start : node.members[0][1]]


def _inside(text: str, node: Node) -> str:
    """The indentation of a member."""
    if node.members and _spread(text, node):
        return margin(text, node.members[0][1])
    return margin(text, node.start) + (indent_unit(text, "    ") if _spread(text, node) else "")


def _shown(text: str, node: Node, value: Any) -> str:
    shown = json.dumps(value, indent=indent_unit(text, "    ") if _spread(text, node) else None)
    return shown.replace("\n", line_end(text, node.start) + _inside(text, node))


def _insert(text: str, node: Node, key: str, value: Any) -> str:
    """One more member, the last, laid out like those before it."""
    end = line_end(text, node.start)
    new = f"{json.dumps(key)}: {_shown(text, node, value)}"
    inside = _inside(text, node)
    if not node.members:
        close = skip(text, node.start + 1)
        between = text[node.start + 1 : close]
        if not _spread(text, node):
            return text[: node.start + 1] + between + new + text[close:]
        comment = between.rstrip() if between.strip() else ""
        outside = margin(text, node.start)
        return f"{text[: node.start + 1]}{comment}{end}{inside}{new}{end}{outside}{text[close:]}"
    last = node.members[-1][2].end
    comma = skip(text, last)
    trailing = text[comma : comma + 1] == ","
    if not _spread(text, node):
        return f"{text[:last]}, {new}{text[last:]}"
    at = _line_end(text, comma + 1 if trailing else last, node.end - 1)
    if at < 0:
        return f"{text[:last]},{end}{inside}{new}{text[last:]}"
    comma_text, tail = ("", ",") if trailing else (",", "")
    return f"{text[:last]}{comma_text}{text[last:at]}{end}{inside}{new}{tail}{text[at:]}"


def _line_end(text: str, at: int, close: int) -> int:
    """Where the line of the last member ends, its comment included; -1 where more follows on it."""
    found = text.find("\n", at, close)
    if found < 0 or "/*" in text[at:found]:
        return -1
    return found - 1 if text[found - 1] == "\r" else found
