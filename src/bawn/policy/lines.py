"""Which line of a TOML text a key stands on. tomllib does not tell; only an error message asks.

A reader of shapes, not of values: headers, keys, and where multi-line strings and arrays end. It is
given text that tomllib has parsed, and answers with the nearest enclosing key it knows.
"""

import re

_HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(#.*)?$")
_PART = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)\s*(\.|=|$)""")


def line_of(text: str, path: tuple[str | int, ...]) -> int:
    """The 1-based line of the longest prefix of `path` that stands in `text`; 1 where none does."""
    known = index(text)
    for length in range(len(path), 0, -1):
        if path[:length] in known:
            return known[path[:length]]
    return 1


_PLACE = re.compile(r"(.+?) ((?:profile|defaults|wall|outbound)\b[^ ]*)( .*)?", re.DOTALL)
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def with_line(place: str, text: str, path: str) -> str:
    """A finding's place "bawn.toml profile.b.mount[0]" with its line, "bawn.toml:12 profile...".

    `text` and `path` are the policy's; any other place is left as it is.
    """
    found = _PLACE.fullmatch(place)
    if not found or found[1] not in (path, path.rpartition("/")[2]):
        return place
    steps = tuple(name or int(number) for name, number in _STEP.findall(found[2]))
    return f"{found[1]}:{line_of(text, steps)} {found[2]}{found[3] or ''}"


def index(text: str) -> dict[tuple[str | int, ...], int]:
    """Key path -> line, for every header and every key at the start of a line."""
    known: dict[tuple[str | int, ...], int] = {}
    counts: dict[tuple[str | int, ...], int] = {}
    prefix: tuple[str | int, ...] = ()
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        header = _HEADER.match(line)
        if header:
            prefix = _resolve(_keys(header[2] + "=")[0], counts, header[1] == "[[")
            for length in range(1, len(prefix) + 1):
                known.setdefault(prefix[:length], number)
            continue
        keys, rest = _keys(line)
        if not keys:
            continue
        for length in range(1, len(keys) + 1):
            known.setdefault((*prefix, *keys[:length]), number)
        number += _continued(rest, lines[number:])
    return known


def _resolve(
    keys: list[str], counts: dict[tuple[str | int, ...], int], is_array: bool
) -> tuple[str | int, ...]:
    """A header's keys with the index of each array of tables on the way."""
    path: tuple[str | int, ...] = ()
    for position, key in enumerate(keys):
        path = (*path, key)
        if position == len(keys) - 1 and is_array:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _keys(line: str) -> tuple[list[str], str]:
    """The dotted key that a line starts with, and what follows its `=`."""
    keys: list[str] = []
    at = 0
    while match := _PART.match(line, at):
        keys.append(match[1].strip("\"'"))
        at = match.end()
        if match[2] == "=":
            return keys, line[at:]
        if match[2] != ".":
            break
    return [], ""


def _continued(value: str, following: list[str]) -> int:
    """How many of the following lines belong to a value that starts with `value`."""
    used, depth, quote = 0, 0, ""
    while True:
        at = 0
        while at < len(value):
            if quote:
                end = value.find(quote, at)
                while end > 0 and quote[0] == '"' and value[end - 1] == "\\":
                    end = value.find(quote, end + 1)
                if end < 0:
                    break
                at, quote = end + len(quote), ""
                continue
            three = value[at : at + 3]
            if three in ('"""', "'''"):
                quote, at = three, at + 3
                continue
            character = value[at]
            if character == "#":
                break
            if character in "\"'":
                quote = character
            depth += (character in "[{") - (character in "]}")
            at += 1
        if len(quote) == 1:
            quote = ""  # a one-line string ends with its line
        if (not quote and depth <= 0) or used >= len(following):
            return used
        value = following[used]
        used += 1
