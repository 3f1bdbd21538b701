"""Whatever a policy says and whatever lies in the trees: what a plan never does.

Hypothesis makes trees with links in all directions, mounts, write roots, masks and overrides; the
judges here know nothing of the compiler: they use `os.path.realpath` and a simulator of mounting.
"""

import os
import random
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bawn.plan.covers import EMPTY
from bawn.plan.model import Bind
from bawn.plan.mounts import MountPlan, compile_mounts
from bawn.policy.model import Mount
from bawn.policy.pathtext import within
from bawn.policy.refused import REFUSED
from tests.unit.mount_world import PROFILE, World, effect, mount, override

DIRS = [
    "home/.ssh/keys", "home/.aws/cli", "home/.config/gcloud", "home/.config/app", "home/src/shop/a/b",
    "home/src/shop/.git/hooks", "home/.state/bawn", "disk/a/b/c", "disk/a/secret/d", "disk/x", "runtime",
]  # fmt: skip
FILES = [
    "home/src/shop/.env", "home/src/shop/a/.env", "home/src/shop/a/b/CLAUDE.md", "disk/a/.env",
    "disk/a/b/.env", "disk/a/b/c/key.pem", "disk/a/secret/d/x", "disk/x/AGENTS.md", "disk/x/plain",
    "disk/a/b/plain", "home/src/shop/.git/config",
]  # fmt: skip
PLACES = sorted({str(parent) for name in DIRS for parent in (Path(name), *Path(name).parents)} - {"."})
NAMES = ["link", ".env", "out", "secret", "door", "CLAUDE.md"]
MASKS = [(), (".env",), (".env", "secret"), ("*.pem", "b/.env"), ("out",), ("b",)]

places = st.sampled_from(PLACES)
links = st.lists(st.tuples(places, st.sampled_from(NAMES), places, st.booleans()), max_size=5)
sources = st.one_of(
    places,
    st.builds(lambda place, name: f"{place}/{name}", places, st.sampled_from(NAMES)),
    st.sampled_from(["", "home/.netrc", "disk/x/plain", "nowhere"]),
)
roots = st.lists(
    st.sampled_from(["a", "b", "out", "link", "a/b", "door/keys", "secret", "../x", "."]), max_size=2
)


class Wish(NamedTuple):
    source: str
    mode: str
    write: list[str]
    mask: tuple[str, ...]
    create: bool


wishes = st.lists(
    st.builds(Wish, sources, st.sampled_from(["ro", "rw"]), roots, st.sampled_from(MASKS), st.booleans()),
    min_size=1,
    max_size=5,
)
lifts = st.lists(st.one_of(sources, st.sampled_from(["~", "~/.ssh", "/", "/etc"])), max_size=3)


def build(top: str, made: list[tuple[str, str, str, bool]]) -> World:
    world = World(Path(top))
    world.dir(*DIRS)
    world.file(*FILES)
    for place, name, to, absolute in made:
        at, target = world.path(f"{place}/{name}"), world.path(to)
        if not os.path.lexists(at) and os.path.isdir(os.path.dirname(at)):
            os.symlink(target if absolute else os.path.relpath(target, os.path.dirname(at)), at)
    return world


def mounts_of(world: World, wanted: list[Wish]) -> list[Mount]:
    return [
        mount(world.path(w.source), w.mode, tuple(w.write), w.mask, w.create)  # type: ignore[arg-type]
        for w in wanted
    ]


def full(world: World, name: str) -> str:
    return name if name.startswith(("/", "~")) else world.path(name)


def real(world: World, name: str) -> str:
    """The place itself, by another way than the compiler's."""
    return os.path.realpath(world.home + name[1:] if name.startswith("~") else name)


SLOW = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@SLOW
@given(links, wishes, lifts)
def test_no_refused_path_is_ever_in_a_plan(
    made: list[tuple[str, str, str, bool]], wanted: list[Wish], lifted: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as top:
        world = build(top, made)
        overrides = tuple(override(full(world, name)) for name in lifted)
        plan = world.plan(*mounts_of(world, wanted), overrides=overrides, workdir=wanted[0].source)
        judge_refused(world, plan, [real(world, one.path) for one in overrides])


def judge_refused(world: World, plan: MountPlan, lifted: list[str]) -> None:
    own = [(real(world, path), False, "tree") for path in world.own]
    rows = own + [(real(world, row.path), row.lift, row.scope) for row in REFUSED]
    sources = [bind.source for bind in plan.binds if bind.source != EMPTY] + list(plan.creates)
    for source in sources:
        place = os.path.realpath(source)
        assert place == source, "what is mounted crosses no link"
        for path, lift, scope in rows:
            inside = within(place, path) and (scope == "tree" or place == path)
            holds = within(path, place) and path != place
            if not inside and not holds:
                continue
            # An override names the refused path; or a source, which then may lie in one.
            named = path in lifted
            whole = inside and any(within(place, one) and within(one, path) for one in lifted)
            assert lift and (named or whole), f"{place} against {path}"


@SLOW
@given(links, wishes, st.randoms(use_true_random=False))
def test_a_plan_does_not_depend_on_the_order_of_anything(
    made: list[tuple[str, str, str, bool]], wanted: list[Wish], rng: random.Random
) -> None:
    with tempfile.TemporaryDirectory() as top, pytest.MonkeyPatch.context() as patch:
        world = build(top, made)
        profile = PROFILE._replace(mounts=tuple(mounts_of(world, wanted)))
        identity = world.identity()
        one = compile_mounts(profile, world.facts(profile), identity)
        scandir: Any = os.scandir

        class Shuffled:
            def __init__(self, fd: Any) -> None:
                self.inner = scandir(fd)
                self.entries = list(self.inner)
                rng.shuffle(self.entries)

            def __enter__(self) -> Any:
                return iter(self.entries)

            def __exit__(self, *_: object) -> None:
                self.inner.close()

        patch.setattr(os, "scandir", Shuffled)
        assert compile_mounts(profile, world.facts(profile), identity) == one
        turned = list(profile.mounts)
        rng.shuffle(turned)
        other = compile_mounts(
            profile._replace(mounts=tuple(turned)),
            world.facts(profile._replace(mounts=tuple(turned))),
            identity,
        )
        assert (other.tmpfs, other.scan) == (one.tmpfs, one.scan)
        assert [(b.target, b.mode) for b in other.binds] == [(b.target, b.mode) for b in one.binds]
        for mine, yours in zip(one.guards, other.guards, strict=True):
            assert (mine.root, set(mine.patterns)) == (yours.root, set(yours.patterns))


@SLOW
@given(links, wishes)
def test_no_mount_hides_another_and_no_mask_is_shown(
    made: list[tuple[str, str, str, bool]], wanted: list[Wish]
) -> None:
    with tempfile.TemporaryDirectory() as top:
        world = build(top, made)
        plan = world.plan(*mounts_of(world, wanted))
        declared = regions(world, plan, wanted)
        clean = not [one for one in plan.findings if one.severity == "error"]
        targets = {bind.target for bind in plan.binds}
        given = [wish for wish in wanted if os.path.realpath(world.path(wish.source)) in targets]
        for base, folders, files in os.walk(top):
            for name in (*folders, *files):
                path = f"{base}/{name}"
                if os.path.islink(path):
                    continue
                state = effect(plan, path)
                if masked(world, path, given) and state != "absent":
                    assert state == "masked", path
                elif clean and state != "masked":
                    mode = declared_mode(declared, path)
                    assert state == mode or (mode == "rw" and protected(path, plan)), path


def regions(world: World, plan: MountPlan, wanted: list[Wish]) -> dict[str, str]:
    """Path -> mode, as the policy says it (write roots are always below a read-only source)."""
    found = {}
    for wish in wanted:
        source = os.path.realpath(world.path(wish.source))
        found[source] = wish.mode
        if wish.mode == "ro":
            for root in wish.write:
                found[os.path.realpath(f"{source}/{root}")] = "rw"
    return found


def declared_mode(declared: dict[str, str], path: str) -> str:
    holders = [root for root in declared if within(path, root)]
    return declared[max(holders, key=len)] if holders else "absent"


def masked(world: World, path: str, wanted: list[Wish]) -> bool:
    """A mask of a mount above names `path` or a directory that holds it."""
    for wish in wanted:
        source = os.path.realpath(world.path(wish.source))
        inside = path[len(source) :].strip("/").split("/") if within(path, source) else []
        for at in range(len(inside)):
            here = "/".join(inside[: at + 1])
            for pattern in wish.mask:
                if pattern in (inside[at], here) and ("/" not in pattern or pattern == here):
                    return True
                if pattern == "*.pem" and inside[at].endswith(".pem"):
                    return True
    return False


def protected(path: str, plan: MountPlan) -> bool:
    """The file, or a directory that holds it, is one that the host runs (or a link led to it)."""
    names = ("CLAUDE.md", "AGENTS.md", "hooks", "config")
    return any(part in names for part in path.split("/")) or any(
        isinstance(one, Bind) and one.role == "protect" and within(path, one.target) for one in plan.binds
    )
