"""`policy.lines`: where a key stands, in every way that TOML has to write it."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bawn.policy.lines import Path, index, line_of, overlong_key

TEXT = '''\
# [not.a.header]
version = 1   # = 2
"quoted key" = 1
'literal.key' = 2
"es\\u0063aped" = 3
"" = 4
a.b . "c d" = 5
inline = { x = 1, "y z" = { deep = 2 }, list = [1, 2] }
date = 1979-05-27 07:32:00

[table] # comment [x]
multi = """
[[fake.header]]
key = "value" \\"""
four quotes: """"
literal = \'\'\'
# no comment \\
x = 1\'\'\'\'
after = "a # b \\" ] }"
array = [ # comment ] with a bracket
    "one", [ "nested",
      "list" ],
    { k = "v",
      n = 1 },

    "[three]",   # , ]
]
empty = []

[  "a" . 'b'.c  ]
x = 1
[[rows]]
v = 1
[[rows]]
v = 2
[rows.sub]
w = 1
[[rows.inner]]
z = 1
[[rows.inner]]
z = 2
[[rows]]
[[rows.inner]]
z = 3
'''.replace('{ k = "v",\n      n = 1 }', '{ k = "v", n = 1 }')  # fmt: skip


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (("version",), "version"),
        (("quoted key",), '"quoted key"'),
        (("literal.key",), "'literal.key'"),
        (("escaped",), '"es'),
        (("",), '"" = 4'),
        (("a", "b", "c d"), "a.b"),
        (("a", "b"), "a.b"),
        (("inline", "y z", "deep"), "inline"),
        (("inline", "list", 1), "inline"),
        (("date",), "date"),
        (("table",), "[table]"),
        (("table", "multi"), "multi"),
        (("table", "literal"), "literal ="),
        (("table", "after"), "after"),
        (("table", "array"), "array ="),
        (("table", "array", 0), '    "one"'),
        (("table", "array", 1), '    "one"'),
        (("table", "array", 1, 1), '      "list"'),
        (("table", "array", 2, "n"), "    { k"),
        (("table", "array", 3), '    "[three]"'),
        (("table", "empty"), "empty"),
        (("a", "b", "c", "x"), "x = 1\n[[rows]]"),
    ],
)
def test_where(path: Path, words: str) -> None:
    assert tomllib.loads(TEXT)
    at = TEXT.index("\n" + words) + 1
    assert line_of(TEXT, path) == TEXT.count("\n", 0, at) + 1


def test_arrays_of_tables() -> None:
    found = index(TEXT)
    lines = TEXT.splitlines()
    first = lines.index("[[rows]]") + 1
    assert [found[("rows", n)] for n in range(3)] == [first, first + 2, first + 10]
    assert found[("rows", 1, "sub", "w")] == first + 5
    assert [found[("rows", 1, "inner", n, "z")] for n in (0, 1)] == [first + 7, first + 9]
    assert found[("rows", 2, "inner", 0, "z")] == first + 12
    assert found[("rows",)] == first


def test_what_is_not_there_is_where_it_would_be() -> None:
    text = "version = 1\n\n[[profile.a.mount]]\nmode = 'ro'\n"
    assert line_of(text, ("profile", "a", "mount", 0, "source")) == 3
    assert line_of(text, ("wall", "deny", 0)) == 1
    assert line_of("", ("version",)) == 1


def test_line_ends_of_windows() -> None:
    assert line_of('a = """\r\nx\r\n"""\r\n\r\n[b]\r\nc = [\r\n1,\r\n2]\r\n', ("b", "c", 1)) == 8


class Writer:
    """Writes data as TOML, each value in a way that `draw` chooses, and notes where each key is."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.text = ""
        self.lines: dict[Path, int] = {}

    def choose(self, *ways: Any) -> Any:
        return self.draw(st.sampled_from(ways))

    def note(self, path: Path) -> None:
        self.lines.setdefault(path, self.text.count("\n") + 1)

    def put(self, text: str) -> None:
        self.text += text

    def table(self, path: Path, data: dict[str, Any]) -> None:
        """Values first, then what becomes a header, as TOML wants it."""
        later = []
        for key, value in data.items():
            if (isinstance(value, dict) and self.choose(True, False)) or (
                isinstance(value, list) and value and all(isinstance(v, dict) for v in value)
            ):
                later.append((key, value))
            else:
                self.put(self.choose("", "\n", "# [c] = {\n", "  "))
                self.note((*path, key))
                self.put(f"{self.key(key)}{self.choose(' = ', '=')}")
                self.value((*path, key), value)
                self.put(self.choose("\n", "  # x = ]\n", "\n\n"))
        for key, value in later:
            if isinstance(value, dict):
                self.header((*path, key), "[", "]")
                self.table((*path, key), value)
                continue
            for number, row in enumerate(value):
                self.header((*path, key), "[[", "]]")
                self.lines[(*path, key, number)] = self.text.count("\n")
                self.table((*path, key, number), row)

    def header(self, path: Path, before: str, after: str) -> None:
        self.note(path)
        self.put(before + ".".join(self.key(part) for part in path if isinstance(part, str)) + after + "\n")

    def key(self, key: str) -> str:
        bare = key.isascii() and key.isalnum()
        ways = [f'"{key}"', f"'{key}'", '"' + "".join(f"\\u{ord(c):04X}" for c in key) + '"']
        return str(self.choose(*([key] if bare else []), *ways))

    def value(self, path: Path, value: Any) -> None:
        if isinstance(value, dict):
            self.put("{ ")
            for number, (key, each) in enumerate(value.items()):
                self.put(", " if number else "")
                self.note((*path, key))
                self.put(f"{self.key(key)} = ")
                self.value((*path, key), each)
            self.put(" }")
        elif isinstance(value, list):
            self.put("[")
            for number, each in enumerate(value):
                self.put(self.choose("", "\n  ", " # ], \n"))
                self.note((*path, number))
                self.value((*path, number), each)
                self.put(self.choose(",", " ,", ",\n"))
            self.put("]")
        elif isinstance(value, str):
            self.put(self.string(value))
        else:
            self.put(str(value))

    def string(self, text: str) -> str:
        basic = text.replace("\\", "\\\\")
        one_line = basic.replace("\n", "\\n").replace('"', '\\"')
        ways = [f'"{one_line}"', '"""\n' + basic.replace('"', '\\"') + '"""']
        if text.count('"') < 3 and not text.startswith("\n"):
            ways.append(f'"""{basic}"""')
        if "'" not in text:
            ways.append(f"'''\n{text}'''")
            if "\n" not in text:
                ways.append(f"'{text}'")
        return str(self.choose(*ways))


KEYS = st.text("ab1. é#=[", max_size=4)
STRINGS = st.text("a\"'\\#[]{}=,\n é", max_size=8)
VALUES = st.recursive(
    st.integers(-9, 99) | STRINGS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(st.data(), st.dictionaries(KEYS, VALUES, max_size=4))
def test_every_key_is_found(data: st.DataObject, values: dict[str, Any]) -> None:
    writer = Writer(data.draw)
    writer.table((), values)
    assert tomllib.loads(writer.text) == values
    found = index(writer.text)
    assert {path: found.get(path) for path in writer.lines} == writer.lines


@pytest.mark.parametrize(
    "text",
    [
        "x" + ".a" * 40 + " = 1",
        "[x" + ".a" * 40 + "]",
        'x = [ """\n\'""", { a' + ".a" * 40 + " = 1 }, 'z' ]",  # no count of dots would see this one
    ],
)
def test_a_key_of_very_many_parts(text: str) -> None:
    assert tomllib.loads(text)
    assert overlong_key("# 1\n" + text) == text.count("\n") + 2
    assert overlong_key(text.replace(".a" * 40, ".a" * 20)) == 0


def test_a_key_of_very_many_parts_is_seen_before_a_later_mistake() -> None:
    assert overlong_key("ok = 1\n" + "a." * 99 + "a = 1\nx = [ } = \n") == 2


@given(st.text("[]{}=.,'\"#\n a\\"))
def test_reading_ends(text: str) -> None:
    """Whatever the text is."""
    assert overlong_key(text) <= text.count("\n") + 1
