"""JSON and JSON5 text as nodes with their places. Pure.

Own code, since the libraries do not give places: `json` and `json5` give values alone. JSON is read as
the JSON5 that it is; whether a strict reader would take it is the caller's question. https://spec.json5.org
"""

import re

from bawn.errors import HostError
from bawn.typed import Any, NamedTuple

_TRIVIA = re.compile(r"(?:[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n\r]|\\(?:\r\n|.))*"|' r"'(?:[^'\\\n\r]|\\(?:\r\n|.))*'", re.DOTALL)
_NAME = re.compile(r"[^\W\d][\w$\u200c\u200d]*|[$_][\w$\u200c\u200d]*")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F]+|(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|Infinity|NaN)"
)
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0",
          "\n": "", "\r": "", "\r\n": "", "\u2028": "", "\u2029": ""}  # fmt: skip
DEPTH = 200  # levels; json itself gives up near 1000


class Node(NamedTuple):
    """A value, from `start` to `end`; `members` are of an object: (key, start of the key, value)."""

    start: int
    end: int
    value: Any  # of a scalar
    kind: str  # scalar, object, array
    members: tuple[tuple[str, int, "Node"], ...] = ()
    items: tuple["Node", ...] = ()

    def data(self) -> Any:
        """As Python values; of a key that stands there twice, the last."""
        if self.kind == "object":
            return {key: node.data() for key, _, node in self.members}
        return [node.data() for node in self.items] if self.kind == "array" else self.value


def read(text: str, name: str) -> Node:
    """The one value of `text`. Raises HostError."""
    node = _value(text, skip(text, 0), name, 0)
    at = skip(text, node.end)
    if at != len(text):
        raise _wrong(text, at, name, "the end")
    return node


def skip(text: str, at: int) -> int:
    """Past white space and comments."""
    found = _TRIVIA.match(text, at)
    return found.end() if found else at


def _wrong(text: str, at: int, name: str, wanted: str) -> HostError:
    got = repr(text[at : at + 10]) if at < len(text) else "the end"
    line = text.count("\n", 0, at) + 1
    return HostError(f"{name} is not JSON: line {line}: {got}; wanted {wanted}", f"mend {name}")


def _value(text: str, at: int, name: str, depth: int) -> Node:
    if depth > DEPTH:
        raise HostError(f"{name} is nested too deeply", f"mend {name}")
    first = text[at : at + 1]
    if first == "{":
        return _object(text, at, name, depth)
    if first == "[":
        return _array(text, at, name, depth)
    if found := _STRING.match(text, at):
        return Node(at, found.end(), _unescape(found[0][1:-1]), "scalar")
    if found := _NUMBER.match(text, at):
        return Node(at, found.end(), _number(found[0]), "scalar")
    word = _NAME.match(text, at)
    if word and word[0] in _WORDS:
        return Node(at, word.end(), _WORDS[word[0]], "scalar")
    raise _wrong(text, at, name, "a value")


def _object(text: str, start: int, name: str, depth: int) -> Node:
    members = []
    at = skip(text, start + 1)
    while text[at : at + 1] != "}":
        found = _STRING.match(text, at)
        word = None if found else _NAME.match(text, at)
        if not found and not word:
            raise _wrong(text, at, name, "a key or }")
        key = _unescape(found[0][1:-1]) if found else word[0] if word else ""
        colon = skip(text, found.end() if found else word.end() if word else at)
        if text[colon : colon + 1] != ":":
            raise _wrong(text, colon, name, "a colon")
        node = _value(text, skip(text, colon + 1), name, depth + 1)
        members.append((key, at, node))
        at = _comma(text, node.end, name, "}")
    return Node(start, at + 1, None, "object", members=tuple(members))


def _array(text: str, start: int, name: str, depth: int) -> Node:
    items = []
    at = skip(text, start + 1)
    while text[at : at + 1] != "]":
        items.append(_value(text, at, name, depth + 1))
        at = _comma(text, items[-1].end, name, "]")
    return Node(start, at + 1, None, "array", items=tuple(items))


def _comma(text: str, at: int, name: str, end: str) -> int:
    at = skip(text, at)
    if text[at : at + 1] == ",":
        return skip(text, at + 1)
    if text[at : at + 1] != end:
        raise _wrong(text, at, name, f"a comma or {end}")
    return at


def _unescape(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        return chr(int(code, 16)) if code else _SHORT.get(found[3], found[3])

    out = _ESCAPE.sub(one, text)
    return out.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _number(text: str) -> int | float:
    body = text.lstrip("+-")
    if body[:2] in ("0x", "0X"):
        return int(body, 16) * (-1 if text[0] == "-" else 1)
    if body.isdecimal() and len(body) < 4000:
        return int(text)
    return float(text.replace("Infinity", "inf").replace("NaN", "nan"))
