"""What the editors share: the change, and text with its byte order mark and line ends. Pure."""

from bawn.errors import HostError
from bawn.typed import Any, NamedTuple

BOM = "\ufeff"


class Set(NamedTuple):
    """The key at `path` (one name a level) gets `value`: a scalar, or lists and mappings of them."""

    path: tuple[str, ...]
    value: Any

    @property
    def key(self) -> str:
        """For a person: terminal.backend"""
        return ".".join(self.path)


def decode(data: bytes, name: str) -> tuple[str, str]:
    """(byte order mark or "", text). Raises HostError for what is not UTF-8."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise HostError(f"{name} is not UTF-8: {error}", f"save {name} as UTF-8") from None
    return (BOM, text[1:]) if text.startswith(BOM) else ("", text)


def line_end(text: str, at: int = 0) -> str:
    """The line end in use around `at`: of that line, of the one before, else of the first."""
    for place in (text.find("\n", at), text.rfind("\n", 0, at), text.find("\n")):
        if place >= 0:
            return "\r\n" if text[place - 1 : place] == "\r" else "\n"
    return "\n"


def line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def next_line(text: str, at: int) -> int:
    """Where the line after that of `at` begins; the end of the text where there is none."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def margin(text: str, at: int) -> str:
    """The space that the line of `at` begins with."""
    line = text[line_start(text, at) : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def indent_unit(text: str, default: str) -> str:
    """One step of indentation: that of the first indented line that is no comment, else `default`."""
    for line in text.splitlines():
        body = line.lstrip(" \t")
        if body and body != line and body[0] not in "#/*":
            return line[: len(line) - len(body)]
    return default


def with_value(data: Any, path: tuple[str, ...], value: Any) -> Any:
    """`data` as it is after the change. Raises KeyError where a parent is no mapping."""
    if not path:
        return value
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise KeyError(path[0])
    return {**data, path[0]: with_value(data.get(path[0]), path[1:], value)}


def same(one: Any, other: Any) -> bool:
    """Equal, types too (1 is neither True nor 1.0), and a NaN is itself."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and (one == other or (one != one and other != other))
