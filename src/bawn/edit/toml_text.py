"""The edit of TOML: tomlkit writes, and the result is held against the old text. Pure."""

import tomllib

from bawn.edit.text import Set, decode, line_end, same, with_value
from bawn.errors import HostError
from bawn.typed import Any


def edit(data: bytes, name: str, changes: tuple[Set, ...]) -> bytes:
    """`data` with the changes. Raises HostError for what is not TOML, or cannot be edited in place."""
    mark, text = decode(data, name)
    for change in changes:
        text = _set(text, name, change)
    return (mark + text).encode()


def _load(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise HostError(f"{name} is not TOML: {error}", f"mend {name}") from None


def _set(text: str, name: str, change: Set) -> str:
    try:
        import tomlkit
        from tomlkit.exceptions import TOMLKitError
    except ImportError:
        raise HostError(
            f"editing {name} needs tomlkit", "apt install python3-tomlkit, or: pip install 'bawn[team]'"
        ) from None
    before = _load(text, name)
    try:
        wanted = with_value(before, change.path, change.value)
    except KeyError as error:
        raise HostError(
            f"{name}: nothing can be set below {error.args[0]}: no table", f"mend {name}"
        ) from None
    if same(_ordered(before), _ordered(wanted)):
        return text
    try:
        document: Any = tomlkit.parse(text)
        stable = document.as_string() == text
        node = document
        for key in change.path[:-1]:
            if key not in node:
                node[key] = tomlkit.table()
            node = node[key]
        node[change.path[-1]] = change.value
        new = _line_ends(text, document.as_string())
    except (TOMLKitError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _refused(name, change, str(error)) from None
    if not stable:
        raise _refused(name, change, "tomlkit does not write it back as it was")
    if not same(_ordered(_load(new, name)), _ordered(wanted)):
        raise _refused(name, change, "the result would not mean the same")
    if wrong := _touched(text, new, before, change, name):
        raise _refused(name, change, wrong)
    return new


def _refused(name: str, change: Set, why: str) -> HostError:
    return HostError(
        f"{name}: {change.key} cannot be set without touching the rest: {why}", f"set {change.key} by hand"
    )


def _ordered(data: Any) -> Any:
    """Without the order of keys, which TOML does not have."""
    if isinstance(data, dict):
        return {key: _ordered(data[key]) for key in sorted(data)}
    return [_ordered(item) for item in data] if isinstance(data, list) else data


def _line_ends(old: str, new: str) -> str:
    """New lines end like the old ones: tomlkit's end in a plain line feed."""
    if line_end(old) == "\n" or old.count("\r\n") != old.count("\n"):
        return new
    return new.replace("\r\n", "\n").replace("\n", "\r\n")


def _touched(old: str, new: str, before: dict[str, Any], change: Set, name: str) -> str:
    """Why more than the key's own lines differ; "" where none do.

    The lines that are gone must hold the key and nothing else: without them the text means what it
    meant, but for the key. Nothing is gone where the key was not there.
    """
    first, last = old.splitlines(keepends=True), new.splitlines(keepends=True)
    head = 0
    while head < min(len(first), len(last)) and first[head] == last[head]:
        head += 1
    tail = 0
    while tail < min(len(first), len(last)) - head and first[-1 - tail] == last[-1 - tail]:
        tail += 1
    gone = first[head : len(first) - tail]
    if not "".join(gone).strip():
        return ""
    if len(gone) == 1 and len(last) - tail - head == 1:
        return ""  # one line for one: an inline table, or the value alone
    rest = "".join(first[:head] + first[len(first) - tail :])
    try:
        left = _ordered(_load(rest, name))
    except HostError:
        return "its lines hold other keys too"
    return "" if same(left, _ordered(_without(before, change.path))) else "its lines hold other keys too"


def _without(data: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    if len(path) == 1:
        return {key: value for key, value in data.items() if key != path[0]}
    inner = data.get(path[0])
    return {**data, path[0]: _without(inner, path[1:])} if isinstance(inner, dict) else data
