"""What a value of a policy may be: the kinds that the table of `fields` is made of. Pure.

A kind says in words what it allows, says the same as JSON Schema as far as that can, and reads one
value. Lists, maps and tables are kinds made of kinds; `reader` walks along them.
"""

import re
from collections.abc import Callable, Iterable

from bawn.policy import units
from bawn.policy.units import NotAllowed
from bawn.typed import Any, NamedTuple

REQUIRED = object()


class Kind(NamedTuple):
    """A scalar has `read`, a list `item`, a map `item` and `key`, a table `fields`.

    A kind with both `read` and `fields` is a scalar or a table.
    """

    allowed: str  # in words
    schema: dict[str, Any]  # of a scalar; for the others `schema` makes it
    example: str  # as TOML
    read: Callable[[Any], Any] | None = None  # raises NotAllowed
    item: "Kind | None" = None
    key: "Kind | None" = None
    fields: tuple["Field", ...] = ()
    private: bool = False  # a wrong value may be a secret: it is never shown


class Field(NamedTuple):
    """One key of a table. `doc` is for a person who writes a policy."""

    name: str
    kind: Kind
    default: Any  # as TOML data, or REQUIRED
    doc: str


def listed(item: Kind) -> Kind:
    return Kind(f"a list of: {item.allowed}", {}, f"[{item.example}]", item=item, private=item.private)


def rows(fields: tuple[Field, ...], name: str) -> Kind:
    """An array of tables, `[[name]]`."""
    row = Kind(f"[[{name}]]", {}, "{ ... }", fields=fields)
    return Kind(f"tables [[{name}]]", {}, f"[[{name}]]", item=row)


def table(fields: tuple[Field, ...], example: str) -> Kind:
    return Kind("a table", {}, example, fields=fields)


def mapped(key: Kind, item: Kind, allowed: str, example: str, least: int = 0) -> Kind:
    """A table whose keys a person chooses, with at least so many."""
    schema = {"minProperties": least} if least else {}
    return Kind(allowed, schema, example, item=item, key=key, private=item.private)


def string(
    allowed: str,
    example: str,
    problem: Callable[[str], str] | None = None,
    meant: Callable[[str], str] | None = None,
    *,
    pattern: str = "",
    also: str = "",
    private: bool = False,
) -> Kind:
    """Text without control characters (but for those in `also`), for which `problem` says nothing.

    `meant` guesses the right text from a wrong one.
    `pattern` is what an editor checks; it may let more pass.
    """

    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise NotAllowed("not a string")
        wrong = "" if value.isprintable() else control(value, also)
        wrong = wrong or (problem(value) if problem else "")
        if wrong:
            instead = meant(value) if meant else ""
            raise NotAllowed(wrong, quoted(instead) if instead else "")
        return value

    schema: dict[str, Any] = {"type": "string"}
    if pattern:
        schema["pattern"] = pattern
    return Kind(allowed, schema, example, read, private=private)


def control(text: str, also: str = "") -> str:
    """What is wrong where `text` holds a control character (C0, DEL or C1): terminals obey them."""
    for char in text:
        code = ord(char)
        if (code < 32 or 127 <= code < 160) and char not in also:
            return f"a text with the control character U+{code:04X}"
    return ""


def matching(pattern: str, allowed: str, example: str) -> Kind:
    """Text that `pattern` matches whole. The pattern reads the same in ECMA 262."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):  # compiled when first used
            raise NotAllowed("")
        return value

    return Kind(allowed, {"type": "string", "pattern": f"^(?:{pattern})$"}, example, read)


def one_of(choices: tuple[str, ...]) -> Kind:
    allowed = ", ".join(map(quoted, choices))

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise NotAllowed("", _nearest(value, choices))
        return value

    return Kind(allowed, {"enum": list(choices)}, quoted(choices[0]), read)


def _nearest(value: Any, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str):
        return ""
    near = nearest(value.lower(), choices, 0.7)  # "r" is as much like "ro" as like "rw"
    return quoted(near) if near else ""


def nearest(word: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """The known word that was probably meant, or ""."""
    import difflib

    return next(iter(difflib.get_close_matches(word, list(known), 1, likeness)), "")


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotAllowed("not a whole number")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise NotAllowed("not a truth value", {"true": "true", "false": "false"}.get(str(value).lower(), ""))
    return value


BOOLEAN = Kind("true or false", {"type": "boolean"}, "true", _boolean)


class Unit(NamedTuple):
    """How a quantity is written. `read` raises NotAllowed."""

    read: Callable[[Any], int]
    show: Callable[[int], str]
    allowed: str
    suffixes: tuple[str, ...]  # () where only a number is allowed
    number: str = "integer"  # the JSON Schema type of the plain number
    scale: int = 1  # of the value against the plain number

    def toml(self, value: int) -> str:
        """The value as a policy would write it."""
        return quoted(self.show(value)) if self.suffixes else self.show(value)


SIZE = Unit(
    units.size,
    units.show_size,
    'a size ("2GiB" = 2 x 1024^3 bytes, "2GB" = 2 x 1000^3, or a number of bytes)',
    tuple(units.SIZES),
)
TIME = Unit(
    units.duration,
    units.show_duration,
    'a time ("90s", "30m", "2h", "1d", or a number of seconds)',
    tuple(units.TIMES),
)
CPUS = Unit(units.cpus, units.show_cpus, "a number of processors (2, or 1.5)", (), "number", 1000)
COUNT = Unit(_integer, str, "a whole number", ())


def ranged(unit: Unit, low: int, high: int, example: str, why: str) -> Kind:
    """A quantity from `low` to `high`, both in what `unit.read` gives; `why` cites the bounds."""
    least, most = unit.toml(low), unit.toml(high)

    def read(value: Any) -> int:
        number = unit.read(value)
        if number < low:
            raise NotAllowed("too little", least)
        if number > high:
            raise NotAllowed("too much", most)
        return number

    schema: dict[str, Any] = {
        "type": unit.number,
        "minimum": low if unit.scale == 1 else low / unit.scale,
        "maximum": high if unit.scale == 1 else high / unit.scale,
    }
    if unit.suffixes:
        suffix = "|".join(unit.suffixes)
        text = {"type": "string", "pattern": rf"^{units.NUMBER} ?({suffix})$"}
        schema = {"anyOf": [text, schema], "examples": [example.strip('"')]}
    return Kind(f"{unit.allowed} from {least} to {most}: {why}", schema, example, read)


def quoted(text: str) -> str:
    """A TOML basic string, with nothing in it that a terminal would obey."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char == "\n":
        return "\\n"
    if char == "\t":
        return "\\t"
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
