"""The edits of JSON5 and TOML: only the key's own lines differ, and the rest means what it meant."""

import json
import sys
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bawn.edit import Set, by_name
from bawn.edit.json_tree import read
from bawn.edit.text import same, with_value
from bawn.errors import HostError


def changed(name: str, text: str, *path: str, value: Any) -> str:
    return by_name(name)(text.encode(), name, (Set(path, value),)).decode()


JSON5 = """\
// the team
{
  agents: {
    'defaults': { sandbox: { mode: "off", } }, // boxes
    /* list: [] */
    count: +0x10,  // hex
  },
  "last": .5 // no comma
}
"""


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        (("agents", "defaults", "sandbox", "mode"), "all", 'mode: "off"', 'mode: "all"'),
        (("agents", "count"), 1, "+0x10,  // hex", "1,  // hex"),
        (("agents", "more"), [1], "// hex\n", '// hex\n    "more": [\n      1\n    ],\n'),
        (("next",), True, '  "last": .5 // no comma\n', '  "last": .5, // no comma\n  "next": true\n'),
        (("agents", "defaults", "sandbox", "x"), 1, '"off", }', '"off", "x": 1, }'),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_json5(path: tuple[str, ...], value: Any, old: str, new: str, end: str, mark: str) -> None:
    text, wanted = mark + JSON5, mark + JSON5.replace(old, new)
    text, wanted = text.replace("\n", end), wanted.replace("\n", end)
    got = changed("openclaw.json", text, *path, value=value)
    assert got == wanted
    assert changed("openclaw.json", got, *path, value=value) == got


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{a: 1, a: 2}", "twice"),
        ("[1]", "no object"),
        ("{a", "is not JSON"),
        ("{a: 01}", "is not JSON"),
        ("{} x", "wanted the end"),
        ("{a: 1 b: 2}", "a comma or }"),
        ("[" * 1000, "no object|nested|not JSON"),
        ("{a: " * 300 + "1" + "}" * 300, "nested too deeply"),
        ("/* {}", "is not JSON"),
        ("{a: 'x\n'}", "not JSON"),
    ],
)
def test_json_refused(text: str, says: str) -> None:
    with pytest.raises(HostError, match=says):
        changed("c.json5", text, "a", value=1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'it\\'s\\x41\\u00e9\\\nx'", "it'sAéx"),
        ("-Infinity", float("-inf")),
        ("5.", 5.0),
        ("-.5e1", -5.0),
        ("0xFf", 255),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ("[1,/*x*/2,]", [1, 2]),
        ("{$a_é: null,}", {"$a_é": None}),
    ],
)
def test_json5_values(text: str, value: Any) -> None:
    assert same(read(text, "c").data(), value)


_SCALAR: st.SearchStrategy[Any] = st.one_of(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    st.floats(allow_nan=False, allow_infinity=False),
)
_JSON = st.recursive(
    _SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
_KEY = st.sampled_from(["a", "b", "é", 'q"}', "//"])


@settings(deadline=None)
@given(
    st.dictionaries(_KEY, st.dictionaries(_KEY, _JSON, max_size=3), max_size=3),
    _KEY,
    _KEY,
    _JSON,
    st.sampled_from([None, 1, 2, "\t"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_any_json(data: dict[str, Any], one: str, two: str, value: Any, indent: Any, end: str) -> None:
    """What stood before the key and after it is there, byte for byte; `json` reads what was wanted."""
    text = json.dumps(data, indent=indent).replace("\n", end)
    new = changed("c.json", text, one, two, value=value)
    assert same(json.loads(new), with_value(data, (one, two), value))
    head = next((n for n, (a, b) in enumerate(zip(text, new, strict=False)) if a != b), len(text))
    node = read(text, "c")
    for key, start, inner in node.members:
        if key == one:
            start = next((at for name, at, _ in inner.members if name == two), inner.start)
        assert key != one or head >= start - 2
        if key != one:
            assert text[start : inner.end] in new
    assert changed("c.json", new, one, two, value=value) == new


TOML = """\
# the top
title = 'x'   # why

[terminal]  # one
  backend   = "local"   # two
# docker = "x"
volumes = [
  "a",  # inside
]

[gateway]
inline = { a = 1, b = 2 } # three
"""


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        (("terminal", "backend"), "docker", '"local"', '"docker"'),
        (("title",), 3, "'x'", "3"),
        (("gateway", "inline", "a"), 5, "a = 1", "a = 5"),
        (("gateway", "strict"), True, "# three\n", "# three\nstrict = true\n"),
        (("terminal", "volumes"), ["b"], '[\n  "a",  # inside\n]', '["b"]'),
        (("new", "x"), 1, "# three\n", "# three\n\n[new]\nx = 1\n"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_toml(path: tuple[str, ...], value: Any, old: str, new: str, end: str) -> None:
    text, wanted = TOML.replace("\n", end), TOML.replace(old, new).replace("\n", end)
    got = changed("bawn.toml", text, *path, value=value)
    assert got.split() == wanted.split()
    assert same(tomllib.loads(got), with_value(tomllib.loads(text), path, value))
    gone = [line for line in text.splitlines(keepends=True) if line not in got.splitlines(keepends=True)]
    assert all(word in "".join(gone) for word in [gone and old.split("\n")[0]] if word)
    assert len(gone) <= old.count("\n") + 1
    assert got.count("\n") == got.count(end)
    assert changed("bawn.toml", got, *path, value=value) == got


@pytest.mark.parametrize(
    ("text", "path", "says"),
    [
        ("a = 1\na = 2\n", ("a",), "is not TOML"),
        ("a = 1\n", ("a", "b"), "no table"),
        ("a = [", ("a",), "not TOML"),
    ],
)
def test_toml_refused(text: str, path: tuple[str, ...], says: str) -> None:
    with pytest.raises(HostError, match=says):
        changed("c.toml", text, *path, value=1)


_TOML_LINE = st.sampled_from(
    [
        "{k} = 1",
        "{k} = 'x'  # why",
        "{k}   = [1, 2]",
        "{k} = {{ p = 1 }}",
        "  {k} = true",
        '{k} = """\nlong\n"""',
        "{k} = 1979-05-27",
        "{k} = [\n  1, # c\n]",
        '"{k}" = 0x10',
    ]
)
_TOML_VALUE = (
    st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.text(max_size=5) | st.lists(st.integers(0, 9))
)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), _TOML_LINE, st.sampled_from(["", "\n", "# c\n"])),
        max_size=4,
        unique_by=lambda row: row[0],
    ),
    st.sampled_from(["", "# x\n[t]\n", "[t.u] # y\n"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([("a",), ("t", "a"), ("t", "u", "b"), ("n", "m")]),
    _TOML_VALUE,
)
def test_any_toml(
    rows: list[tuple[str, str, str]], head: str, end: str, path: tuple[str, ...], value: Any
) -> None:
    """It means what was wanted, or is refused; no line is lost but the key's own."""
    text = (
        "# top\n"
        + head
        + "".join(gap + line.format(k=key) + "\n" for key, line, gap in rows)
        + "[z]\nz = 1\n"
    )
    text = text.replace("\n", end)
    try:
        got = changed("c.toml", text, *path, value=value)
    except HostError as error:
        assert "cannot be set without" in error.message or "no table" in error.message
        return
    assert same(sorted(tomllib.loads(got)), sorted(with_value(tomllib.loads(text), path, value)))
    assert tomllib.loads(got) == with_value(tomllib.loads(text), path, value)
    own = {line for key, line, _ in rows if key == path[-1] for line in line.format(k=key).split("\n")}
    lost = set(text.splitlines()) - set(got.splitlines()) - own
    assert not lost


@pytest.mark.parametrize(("name", "module"), [("c.yaml", "ruamel.yaml"), ("c.toml", "tomlkit")])
def test_a_missing_library_is_named_with_its_cure(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(HostError, match=module) as error:
        changed(name, "a = 1" if name == "c.toml" else "a: 1", "a", value=2)
    assert error.value.fix == f"apt install python3-{module}, or: pip install 'bawn[team]'"
