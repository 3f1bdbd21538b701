"""The edit of YAML: only the key's own lines differ, and every reader sees what was wanted."""

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from bawn.edit import Set, by_name
from bawn.edit.text import same, with_value
from bawn.errors import HostError

edit = by_name("/x/config.yaml")


def load(text: str, version: tuple[int, int] = (1, 2)) -> Any:
    """By ruamel.yaml, as a reader of that version of YAML."""
    yaml = YAML(typ="safe", pure=True)
    yaml.version = version
    yaml.allow_duplicate_keys = True
    return yaml.load(io.StringIO(text.removeprefix("\ufeff"), newline=""))


def changed(text: str, *path: str, value: Any) -> str:
    return edit(text.encode(), "config.yaml", (Set(path, value),)).decode()


def lines(old: str, new: str) -> tuple[list[str], list[str]]:
    """(lines that are gone, lines that are new): the middle between what is the same."""
    first, last = (text.removeprefix("\ufeff").splitlines(keepends=True) for text in (old, new))
    while first and last and first[0] == last[0]:
        del first[0], last[0]
    while first and last and first[-1] == last[-1]:
        del first[-1], last[-1]
    return first, last


R01 = """\
# one
terminal:   # two
    backend: 'local'   # three
    cwd:  "/w"
anchors: &a {x: 1}
use: *a
odd:
   - y
"""

R02 = """\
terminal:
  backend: local
  # docker:
  #   image: "x"
  #     nested: 0755
flag: on
mode: 0755
clock: 1:30
word: "no"
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_r01_setting_one_key_keeps_comments_anchors_quotes_indents_and_line_ends(end: str, mark: str) -> None:
    text = mark + R01.replace("\n", end)
    new = changed(text, "terminal", "backend", value="docker")
    assert lines(text, new) == (
        [f"    backend: 'local'   # three{end}"],
        [f"    backend: docker   # three{end}"],
    )


@pytest.mark.parametrize(
    ("text", "path", "says"),
    [
        (R01, ("anchors", "x"), "has an anchor"),
        (R01, ("use", "x"), "is an alias"),
        ("a:\n  b: 1\n  b: 2\n", ("a", "b"), "twice"),
        ("a: 1\na: 2\n", ("a",), "twice"),
        ("x: &x {k: 1}\na:\n  <<: *x\n", ("a", "k"), "takes keys from elsewhere"),
        ("a: !secret b\n", ("a",), "has a tag"),
        ("a:\n  - &x y\nb: *x\n", ("a",), "holds an anchor"),
        ("a: 1\n", ("a", "b"), "no mapping"),
        ("- a\n", ("a",), "no mapping"),
        ("a: 1\n---\nb: 2\n", ("a",), "several YAML documents"),
        ("a: [1\n", ("a",), "is not YAML"),
        ("a:\n\tb: 1\n", ("a",), "is not YAML"),
    ],
)
def test_r01_what_is_shared_or_double_is_refused(text: str, path: tuple[str, ...], says: str) -> None:
    with pytest.raises(HostError, match=says):
        changed(text, *path, value="new")


def test_duplicates_and_anchors_elsewhere_do_not_matter() -> None:
    text = "x: &x 1\ny: *x\nd:\n  e: 1\n  e: 2\na: 1\n"
    assert changed(text, "a", value=2) == text.replace("a: 1", "a: 2")


def test_r02_templates_in_comments_and_words_of_yaml_1_1_stay() -> None:
    new = changed(R02, "terminal", "cwd", value="/w")
    assert lines(R02, new) == ([], ["  cwd: /w\n"])
    uncommented = new.replace("  # docker:", "  docker:").replace("  #   image", "    image")
    assert load(uncommented)["terminal"]["docker"] == {"image": "x"}
    for version in ((1, 1), (1, 2)):
        assert same(load(new, version), with_value(load(R02, version), ("terminal", "cwd"), "/w"))


@pytest.mark.parametrize(
    ("old", "path", "value", "new"),
    [
        ("", ("a", "b"), 1, "a:\n  b: 1\n"),
        ("# only a comment", ("a",), 1, "# only a comment\na: 1\n"),
        ("a:\n    # x: 1\nb: 2\n", ("a", "x"), True, "a:\n  x: true\n    # x: 1\nb: 2\n"),
        ("a: null\n", ("a", "x"), 1, "a:\n  x: 1\n"),
        ("a: {}  # c\n", ("a", "x"), "w", "a: {x: w}  # c\n"),
        ("a: {b: 1, }\n", ("a", "x"), "w", "a: {b: 1, x: w, }\n"),
        ("a: |\n  t\n\n\nb: 1", ("a",), "z", "a: z\n\n\nb: 1"),
        ("a: |+\n  t\n\n", ("b",), 1, "a: |+\n  t\n\nb: 1\n"),
        ("a:\n- x  # one\n- y\n# after\nb: 1\n", ("a",), ["z"], "a:\n- z\n# after\nb: 1\n"),
        ("a:  # c\nb: 1\n", ("a",), ["z"], "a:  # c\n  - z\nb: 1\n"),
        ("a: x  # c\nb: 1\n", ("a",), ["z"], "a:  # c\n  - z\nb: 1\n"),
        ("a:\n  # keep\n  x: 1\nb: 1\n", ("a",), 2, "a: 2\n  # keep\nb: 1\n"),
        ("a:\n  b:\n    c: 1\n\n# end\n", ("a", "d"), 1, "a:\n  b:\n    c: 1\n  d: 1\n\n# end\n"),
        ("l:\n  - a: 1\n", ("m",), None, "l:\n  - a: 1\nm: null\n"),
        ("a: 'x\n  y'\nb: 1\n", ("a",), "z", "a: z\nb: 1\n"),
    ],
)
def test_shapes(old: str, path: tuple[str, ...], value: Any, new: str) -> None:
    assert changed(old, *path, value=value) == new
    assert changed(new, *path, value=value) == new  # twice is once


def test_one_call_sets_several_keys() -> None:
    changes = (Set(("a", "x"), 1), Set(("b",), "on"), Set(("a", "y"), [1, "1"]))
    new = edit(b"a:\n  x: 0\n", "c", changes).decode()
    assert load(new, (1, 1)) == {"a": {"x": 1, "y": [1, "1"]}, "b": "on"}


_WORDS = st.sampled_from(
    [
        "on",
        "0755",
        "1:30",
        "no",
        "~",
        "",
        "a b",
        "#x",
        "a: b",
        "1e3",
        "é",
        "\x85",
        "\U0001f600",
        "- a",
        "2020-01-01",
        "=",
        "<<",
        ".inf",
        "0x1f",
        "a#b",
        " x ",
        "x\ny",
        "'",
        '"',
    ]
)
_SCALAR: st.SearchStrategy[Any] = st.one_of(
    _WORDS | st.text(max_size=6) | st.integers() | st.booleans() | st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
)
_VALUE = _SCALAR | st.lists(_SCALAR, max_size=3) | st.dictionaries(_WORDS, _SCALAR, max_size=3)
_KEYS = ["alpha", "beta", "gamma", "delta"]
_LEAF = st.sampled_from(
    [
        ["{i}{k}: 1"],
        ["{i}{k}: 'x'   # why"],
        ["{i}{k}: on"],
        ["{i}{k}:"],
        ["{i}{k}: [a, 'b']  # l"],
        ["{i}{k}: {{p: 1, q: [2]}}"],
        ["{i}{k}: |", "{i}   text", "", "{i}   more"],
        ["{i}{k}: >-", "{i}   folded"],
        ["{i}{k}:", "{i}  - x  # x", "{i}  -   y"],
        ["{i}{k}:", "{i}- x"],
        ["{i}{k}:", "{i}   n: 1", "{i}   m: 0755"],
        ["{i}{k}: plain", "{i}   over lines"],
        ['{i}{k}: "q\\', '{i}   r"'],
        ["{i}{k}: {{}}"],
        ['{i}"{k}": 1:30'],
        ["{i}{k} :  2"],
    ]
)
_BETWEEN = st.sampled_from([[], [""], ["{i}# comment"], ["# at the margin"], ["{i}# {k}: old", ""]])


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[tuple[str, str], str]]:
    """A text of sections with leaves, and the lines of each leaf."""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text, places = draw(st.sampled_from(["", "# head" + end, "\ufeff", "---" + end])), {}
    for section in draw(st.lists(st.sampled_from(_KEYS), min_size=1, max_size=3, unique=True)):
        text += f"{section}:{draw(st.sampled_from(['', '  # section']))}{end}"
        indent = draw(st.sampled_from([" ", "  ", "    "]))
        for key in draw(st.lists(st.sampled_from(_KEYS), min_size=1, max_size=3, unique=True)):
            fill = {"i": indent, "k": key}
            text += "".join(line.format(**fill) + end for line in draw(_BETWEEN))
            leaf = "".join(line.format(**fill) + end for line in draw(_LEAF))
            places[section, key] = leaf
            text += leaf
    return text.removesuffix(end) if draw(st.booleans()) else text, places


@settings(deadline=None)
@given(documents(), st.sampled_from(_KEYS), st.sampled_from(_KEYS), _VALUE)
def test_any_document(
    document: tuple[str, dict[tuple[str, str], str]], section: str, key: str, value: Any
) -> None:
    """Every other line stays, byte for byte, and YAML 1.1 and 1.2 agree on the rest and the key."""
    text, places = document
    new = changed(text, section, key, value=value)
    for version in ((1, 1), (1, 2)):
        wanted, got = with_value(load(text, version), (section, key), value), load(new, version)
        assert got == wanted
        assert same(got[section][key], value)
    gone, _ = lines(text, new)
    own = places.get((section, key), "").splitlines(keepends=True)
    allowed = [*own, *(line.rstrip("\r\n") for line in own[-1:])]
    # A last line without an end gets one before another line can follow it.
    assert all(line in allowed or not line.strip() or text.endswith(line) for line in gone), gone
    assert changed(new, section, key, value=value) == new
