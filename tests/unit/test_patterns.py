"""`policy.patterns`: the mask grammar, and that it stays cheap on hostile names."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bawn.policy.patterns import Matcher, problem


def hit(pattern: str, relpath: str, casefold: bool = False) -> bool:
    return Matcher([pattern], casefold).match(relpath.rpartition("/")[2], relpath) == pattern


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (".env", [".env", "a/.env", "a/b/c/.env"], [".envrc", "x.env", "env", ".env.x"]),
        (".env.*", [".env.local", "a/.env.", ".env..x"], [".env", "a.env.local", ".envx"]),
        ("*.pem", ["a.pem", "d/e/.pem"], ["a.pemx", "pem"]),
        ("id_*.key", ["id_.key", "id_rsa.key"], ["id.key", "id_rsa.key2", "xid_.key"]),
        ("id_*_k", ["id__k", "a/id_x_k"], ["id_k", "id_"]),
        ("key.json/", ["key.json", "a/key.json"], ["key.jsonx"]),
        ("/key.json", ["key.json"], ["a/key.json"]),
        ("config/key.json", ["config/key.json"], ["a/config/key.json", "key.json"]),
        ("config/*", ["config/a", "config/.b"], ["config", "a/config/b", "config/a/b"]),
        ("config/**", ["config/a", "config/a/b/c"], ["config", "xconfig/a", "a/config/b"]),
        ("a/**/k", ["a/k", "a/b/k", "a/b/c/k"], ["b/k", "k", "a/kk"]),
        ("**/certs/*.key", ["certs/a.key", "x/y/certs/b.key"], ["a.key", "certs/x/a.key"]),
        ("*/k", ["a/k"], ["k", "a/b/k"]),
        ("a*/**/b?/k", ["a/bx/k", "ab/c/d/b1/k"], ["a/k", "a/b/k", "b/bx/k"]),
        ("**/x/**/y/z", ["x/y/z", "a/x/b/x/y/z"], ["x/z", "y/z", "x/y/a/z"]),
        ("file?", ["file1", "a/filex"], ["file", "file12"]),
        ("[ab].txt", ["a.txt", "b.txt"], ["c.txt", "[ab].txt"]),
        ("[!ab].txt", ["c.txt"], ["a.txt"]),
        ("[]x]", ["]", "x"], ["[", "]x"]),
        ("[a-c]*[0-9]", ["a1", "cxx9"], ["d1", "a"]),
        ("\\*", ["*"], ["a"]),
        ("\\[x", ["[x"], ["x"]),
        ("**", ["a", "a/b"], []),
        ("*", ["a", "a/.b"], []),
        ("**/.env", [".env", "a/b/.env"], [".envx"]),
        ("./a", ["a"], ["b/a"]),
        ("secrets", ["secrets", "a/secrets"], ["secrets2"]),
        (".git", [".git", "a/.git"], [".gitignore", ".gitattributes", "a.git"]),
        ("a b", ["a b"], ["a"]),
        ("na\nme", ["na\nme"], ["name"]),
        ("x*\ny*z", ["xa\nyz"], ["xyz"]),
    ],
)
def test_grammar(pattern: str, yes: list[str], no: list[str]) -> None:
    assert problem(pattern) == ""
    assert [path for path in yes if not hit(pattern, path)] == []
    assert [path for path in no if hit(pattern, path)] == []


@pytest.mark.parametrize(
    "pattern", ["", "/", ".", "./", "!.env", "../x", "a/../b", "[a", "[z-a]", "a\\", "a\0"]
)
def test_not_a_pattern(pattern: str) -> None:
    assert problem(pattern)


def test_case_and_normal_form_on_an_insensitive_tree() -> None:
    assert hit(".git", ".GIT", casefold=True)
    assert hit(".Env", ".eNV", casefold=True)
    assert hit("*.PEM", "a.pem", casefold=True)
    assert hit("STRASSE", "straße", casefold=True)
    assert not hit(".git", ".GIT")
    assert not hit(".git", ".GitIgnore", casefold=True)
    assert hit("config/KEY", "Config/key", casefold=True)


def test_normal_forms_are_one_name_everywhere() -> None:
    name = unicodedata.normalize("NFC", "gehé́im")
    other = unicodedata.normalize("NFD", name)
    assert name != other
    assert hit(name, other)
    assert hit(other, name)
    assert hit(other.upper(), name, casefold=True)


def test_the_pattern_that_matched_is_named() -> None:
    matcher = Matcher([".env", "*.pem", "a?c", "x*y*z", "conf/k*"])
    assert matcher.match("abc", "abc") == "a?c"
    assert matcher.match("x1y2z", "x1y2z") == "x*y*z"
    assert matcher.match("k1", "conf/k1") == "conf/k*"
    assert matcher.match("k1", "k1") is None
    assert matcher.match("s.pem", "conf/s.pem") == "*.pem"


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*a*a*a*a*a*a*a*a*b", "a" * 255),
        ("*[a]*?a*[a]*a?*b", "a" * 255),
        ("?*?*?*?*?*?*?*x", "y" * 255),
        ("a*b*a*b*c", "ab" * 127),
    ],
)
def test_no_name_makes_a_pattern_slow(pattern: str, name: str) -> None:
    matcher = Matcher([pattern])
    begin = time.perf_counter()
    for _ in range(20):
        assert matcher.match(name, name) is None
    assert time.perf_counter() - begin < 0.5


def test_no_path_makes_a_pattern_slow() -> None:
    pattern = "/".join(["**", "a*"] * 8) + "/b/k"
    path = "/".join(["a"] * 400) + "/k"
    begin = time.perf_counter()
    assert not hit(pattern, path)
    assert time.perf_counter() - begin < 0.5


def test_cost_does_not_grow_with_the_number_of_patterns() -> None:
    kinds = ["lit{}", "pre{}*", "*suf{}", "at/d{}/k", "d{}/**", "**/n{}/k"]

    def cost(count: int) -> float:
        matcher = Matcher([kind.format(n) for kind in kinds for n in range(count)])
        names = [f"file{n}" for n in range(2000)]
        best = 9.0
        for _ in range(3):
            begin = time.perf_counter()
            for name in names:
                matcher.match(name, f"some/dir/{name}")
            best = min(best, time.perf_counter() - begin)
        return best

    assert cost(2000) < 4 * cost(2) + 0.01


LETTERS = st.text("ab.*?", min_size=1, max_size=6)


def reference(pattern: str, name: str) -> bool:
    """The textbook recursion."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return reference(pattern[1:], name) or bool(name and reference(pattern, name[1:]))
    return bool(name) and pattern[0] in ("?", name[0]) and reference(pattern[1:], name[1:])


@given(st.lists(LETTERS, min_size=1, max_size=4), st.text("ab.", min_size=1, max_size=8))
def test_agrees_with_the_textbook(patterns: list[str], name: str) -> None:
    patterns = [p for p in patterns if p not in (".", "..")] or ["a"]
    if name in (".", ".."):
        return
    found = Matcher(patterns).match(name, name)
    wanted = [pattern for pattern in patterns if reference(pattern, name)]
    assert found in wanted if wanted else found is None


PATHS = st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=5)
GLOBS = st.lists(st.sampled_from(["a", "b", "*", "a*", "**"]), min_size=2, max_size=5)


def reference_path(pattern: list[str], steps: list[str]) -> bool:
    if not pattern:
        return not steps
    if pattern[0] == "**":
        if len(pattern) == 1:
            return bool(steps)
        return reference_path(pattern[1:], steps) or bool(steps and reference_path(pattern, steps[1:]))
    return bool(steps) and reference(pattern[0], steps[0]) and reference_path(pattern[1:], steps[1:])


@given(GLOBS, PATHS)
def test_paths_agree_with_the_textbook(pattern: list[str], steps: list[str]) -> None:
    assert hit("/".join(pattern), "/".join(steps)) == reference_path(pattern, steps)
