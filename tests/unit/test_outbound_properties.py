"""Random trees, links and spellings: what leaves is what a simple oracle on `realpath` would let leave."""

import os
import shutil
import stat
import tempfile
from fnmatch import fnmatch
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from bawn.effects.outbound.guard import Guard
from bawn.outbound.decide import Ruleset
from bawn.outbound.extract import extract
from bawn.outbound.locate import Root
from bawn.outbound.model import Candidate

DENY = (".env*", "no")
NAMES = ("a", "b", "c.md", ".env", "no", "é")
PARTS = st.sampled_from((*NAMES, "..", ".", ""))
PATHS = st.lists(PARTS, min_size=1, max_size=5).map("/".join)
TOPS = st.sampled_from(("root", "root2", "outside", "rootx"))
PLACES = st.tuples(TOPS, st.lists(st.sampled_from(NAMES), min_size=1, max_size=3)).map(
    lambda found: "/".join((found[0], *found[1]))
)
TARGETS = st.tuples(st.booleans(), TOPS, PATHS)
STEPS = st.one_of(
    st.tuples(st.just("file"), PLACES),
    st.tuples(st.just("dir"), PLACES),
    st.tuples(st.just("link"), PLACES, TARGETS),
    st.tuples(st.just("hard"), PLACES, PLACES),
    st.tuples(st.just("fifo"), PLACES),
    st.tuples(st.just("remove"), PLACES),
    st.tuples(st.just("move"), PLACES, PLACES),
)


def make(top: str, step: tuple[object, ...]) -> None:
    """One change to the tree; one that is not possible is none."""
    kind, path = step[0], f"{top}/{step[1]}"
    try:
        if kind != "remove":
            os.makedirs(os.path.dirname(path), exist_ok=True)
        if kind == "file":
            # O_NONBLOCK: a fifo may stand there, and nobody reads it.
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o644)
            os.write(fd, str(step[1]).encode())
            os.close(fd)
        elif kind == "dir":
            os.mkdir(path)
        elif kind == "link":
            absolute, where, rest = cast(tuple[bool, str, str], step[2])
            text = f"{top}/{where}/{rest}" if absolute else f"../{where}/{rest}"
            os.symlink(text, path)
        elif kind == "hard":
            os.link(f"{top}/{step[2]}", path, follow_symlinks=False)
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "move":
            os.rename(path, f"{top}/{step[2]}")
        elif os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except OSError:
        pass


def named(top: str, path: str) -> bool:
    """A name that is denied stands in it, below a root."""
    for root in ("root", "root2"):
        base = f"{top}/{root}"
        if path == base or path.startswith(f"{base}/"):
            return any(fnmatch(part, pattern) for part in path[len(base) :].split("/") for pattern in DENY)
    return True  # outside


def oracle(top: str, path: str) -> str:
    """The object that may leave, or "". Only for what stands still."""
    try:
        real = os.path.realpath(path, strict=True)
        info = os.stat(real)
    except OSError:
        return ""
    if not stat.S_ISREG(info.st_mode) or info.st_nlink != 1:
        return ""
    return "" if named(top, real) else real


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, min_size=3, max_size=14), st.lists(st.tuples(TOPS, PATHS), min_size=1, max_size=8))
def test_what_leaves_is_what_the_oracle_says(
    steps: list[tuple[object, ...]], asked: list[tuple[str, str]]
) -> None:
    with tempfile.TemporaryDirectory() as made:
        top = os.path.realpath(made)
        for name in ("root", "root2", "outside", "rootx"):
            os.mkdir(f"{top}/{name}")
        roots = tuple(Root(f"{top}/{name}", f"{top}/{name}", f"{top}/{name}") for name in ("root", "root2"))
        with Guard(Ruleset(roots, DENY), top, 1 << 20) as guard:
            for step in steps:
                make(top, step)
                paths = [f"{top}/{where}/{rest}" for where, rest in asked]
                paths += [f"{top}/{step[1]}"]
                for path in paths:
                    if not all(os.path.isdir(f"{top}/{name}") for name in ("root", "root2")):
                        return
                    want = oracle(top, path)
                    found = list(guard.judge([Candidate(path, (path,), "given")]))
                    verdict, fd = found[0]
                    if fd >= 0:
                        os.close(fd)
                        assert verdict.path == want, (path, verdict)
                    elif want:
                        # Stricter on purpose: the text lies outside or names what is denied, a link on the
                        # way does, or a link passes through what is outside and comes back.
                        assert verdict.rule in ("BWN901", "BWN910", "BWN931", "BWN930", "BWN932"), verdict
                        plain = ".." not in path and not _linked(top, path)
                        assert not plain or named(top, os.path.normpath(path)), (path, verdict)


def _linked(top: str, path: str) -> bool:
    """A link stands on the way."""
    at = top
    for part in path[len(top) :].split("/"):
        at = f"{at}/{part}"
        if os.path.islink(at.rstrip("/")):
            return True
    return False


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200) | st.text("/~.MEDIAfile: \n\"'`()[]<>$C\\ab。（「", max_size=200))
def test_any_text_is_read(text: str) -> None:
    for one in extract(text):
        assert one.problem or one.readings
        assert all(isinstance(reading, str) and reading for reading in one.readings)


WORD = st.text("abcXYZ019_-é報", min_size=1, max_size=8)
PATH = st.builds(
    lambda parts, extension: "/" + "/".join(parts) + extension,
    st.lists(WORD, min_size=1, max_size=4),
    st.sampled_from((".md", ".pdf", ".tar.gz", ".PNG")),
)
AROUND = st.sampled_from(
    ("{}", " {} ", "see {}.", "({})", "`{}`", '"{}"', "**{}**", "[x]({})", "MEDIA:{}", "「{}」", "<{}>",
     "{}；", "a\n{}\nb", "{}, {}", "file://{}", "{}（1）", "x={}", "- {}:", "'{}'", "{}!?", "MEDIA: `{}`")
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(PATH, AROUND, st.text("abc .,\n。", max_size=20), st.text(" .,\n。", max_size=10))
def test_a_path_is_found_whatever_stands_around_it(path: str, around: str, before: str, after: str) -> None:
    text = f"{before} {around.replace('{}', path)}{after}"
    assert any(path in one.readings for one in extract(text)), text
