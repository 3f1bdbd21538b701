"""Which line of a TOML text a key stands on: tomllib does not tell. Pure.

A reader of shapes, not of values: headers, keys, and where strings, arrays and inline tables end. It
need not know what is wrong: it reads what is right, and stops somewhere in what is not.
"""

import re

Path = tuple[str | int, ...]

_NOT_BARE = frozenset(" \t\r\n.=]\"'")
_ENDS_VALUE = frozenset(",]}#\r\n")
# tomllib takes time and memory by the square of a dotted key's parts: 3 GiB for a key of 100 kB. The
# deepest key that a policy has is profile.NAME.limits.memory.
_PARTS = 32
_PLACE = r"(.+?) ((?:profile|defaults|wall|outbound)\b[^ ]*)( .*)?"
_STEP = r"([^.\[\]]+)|\[(\d+)\]"

_last: tuple[str, dict[Path, int]] = ("", {})  # many are asked about one text


def line_of(text: str, path: Path) -> int:
    """The 1-based line of the longest part of `path` that stands in `text`; 1 where none does."""
    global _last
    if _last[0] != text:
        _last = (text, index(text))
    known = _last[1]
    return next((known[path[:n]] for n in range(len(path), 0, -1) if path[:n] in known), 1)


def with_line(place: str, text: str, path: str) -> str:
    """A finding's place "bawn.toml profile.b.mount[0]" with its line, "bawn.toml:12 profile...".

    `text` and `path` are the policy's; any other place is left as it is.
    """
    found = re.fullmatch(_PLACE, place, re.DOTALL)
    if not found or found[1] not in (path, path.rpartition("/")[2]):
        return place
    steps = tuple(name or int(number) for name, number in re.findall(_STEP, found[2]))
    return f"{found[1]}:{line_of(text, steps)} {found[2]}{found[3] or ''}"


def overlong_key(text: str) -> int:
    """The line of the first key of more parts than any parser should be given; 0 where none is.

    `text` may be anything. Up to its first mistake this reads what a parser would read.
    """
    scan = _Scan(text)
    try:
        scan.document()
    except _Overlong:
        return text.count("\n", 0, scan.at) + 1
    except (ValueError, IndexError, RecursionError):
        return 0
    return 0


def index(text: str) -> dict[Path, int]:
    """Key path -> line, for every header, every key and every item of an array of a valid text."""
    scan = _Scan(text)
    scan.document()
    return scan.lines


class _Overlong(Exception):
    pass


class _Scan:
    def __init__(self, text: str) -> None:
        self.text = text + "\n\0"  # ends every bare word and every line
        self.at = 0
        self.lines: dict[Path, int] = {}
        self._line, self._counted = 1, 0
        self._tables: dict[Path, int] = {}  # array of tables -> index of its last element

    def document(self) -> None:
        prefix: Path = ()
        while True:
            self._blank()
            char = self.text[self.at]
            if char == "\0":
                return
            if char == "[":
                is_array = self.text.startswith("[[", self.at)
                self.at += 1 + is_array
                prefix = self._header(self._keys(), is_array)
                self.at += 1 + is_array
            else:
                self._pair(prefix)

    def _header(self, keys: list[str], is_array: bool) -> Path:
        """The path a header opens, with the index of each array of tables on the way."""
        path: Path = ()
        for number, key in enumerate(keys, 1):
            path = (*path, key)
            self._mark(path)
            if number == len(keys) and is_array:
                self._tables[path] = self._tables.get(path, -1) + 1
            if path in self._tables:
                path = (*path, self._tables[path])
                self._mark(path)
        return path

    def _pair(self, prefix: Path) -> None:
        """`key = value`; ends behind the value."""
        path = prefix
        for key in self._keys():
            path = (*path, key)
            self._mark(path)
        self.at += 1  # "="
        self._value(path)

    def _keys(self) -> list[str]:
        """A dotted key; ends at what follows it."""
        keys: list[str] = []
        while True:
            if len(keys) > _PARTS:
                raise _Overlong
            self._space()
            start = self.at
            if self.text[start] in "\"'":
                self._string()
                keys.append(_unquoted(self.text[start : self.at]))
            else:
                while self.text[self.at] not in _NOT_BARE:
                    self.at += 1
                keys.append(self.text[start : self.at])
            self._space()
            if self.text[self.at] != ".":
                return keys
            self.at += 1

    def _value(self, path: Path) -> None:
        self._space()
        char = self.text[self.at]
        if char in "\"'":
            self._string()
        elif char == "[":
            self.at += 1
            number = 0
            while not self._closed("]"):
                self._mark((*path, number))
                self._value((*path, number))
                number += 1
        elif char == "{":
            self.at += 1
            while not self._closed("}"):
                self._pair(path)
        elif char in _ENDS_VALUE:
            raise ValueError
        else:
            while self.text[self.at] not in _ENDS_VALUE:
                self.at += 1

    def _closed(self, bracket: str) -> bool:
        """Steps over blanks and commas; True behind the bracket that ends the array or table."""
        self._blank()
        while self.text[self.at] == ",":
            self.at += 1
            self._blank()
        if self.text[self.at] != bracket:
            return False
        self.at += 1
        return True

    def _string(self) -> None:
        quote = self.text[self.at]
        mark = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        end = self.text.index(mark, self.at + len(mark))
        while quote == '"' and self._escaped(end):
            end = self.text.index(mark, end + 1)
        self.at = end + len(mark)
        if len(mark) == 3:  # up to two quotes may stand before the three that end it
            while self.text[self.at] == quote:
                self.at += 1

    def _escaped(self, at: int) -> bool:
        """An odd number of backslashes stands before."""
        before = at
        while self.text[before - 1] == "\\":
            before -= 1
        return (at - before) % 2 == 1

    def _space(self) -> None:
        while self.text[self.at] in " \t":
            self.at += 1

    def _blank(self) -> None:
        """Steps over spaces, line ends and comments."""
        while True:
            while self.text[self.at] in " \t\r\n":
                self.at += 1
            if self.text[self.at] != "#":
                return
            self.at = self.text.index("\n", self.at)

    def _mark(self, path: Path) -> None:
        if path not in self.lines:
            self._line += self.text.count("\n", self._counted, self.at)
            self._counted = self.at
            self.lines[path] = self._line


def _unquoted(key: str) -> str:
    """The key that a quoted key names."""
    if key.startswith("'") or "\\" not in key:
        return key[1:-1]
    import tomllib

    return str(tomllib.loads(f"key = {key}")["key"])
