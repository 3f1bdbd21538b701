"""`plan.report`: the boundary as a person reads it."""

import re
from pathlib import Path

import pytest

from bawn.plan.model import Finding, Identity, Plan, Tmpfs
from bawn.plan.mounts import MountPlan
from bawn.plan.report import boundary, escaped, findings
from tests.unit.mount_world import World, mount, override


def whole(mounts: MountPlan) -> Plan:
    """A plan with these mounts and nothing else of interest."""
    empty: dict[str, object] = dict.fromkeys(Plan._fields, "")
    tuples = ("command", "env", "limits", "seed", "settings", "home_dirs")
    parts = {name: getattr(mounts, name) for name in MountPlan._fields}
    data = {**empty, **dict.fromkeys(tuples, ()), **parts, "profile": "t"}
    data["identity"] = Identity(1000, 1000, 1000, 1000, False)
    data["tmpfs"] = (Tmpfs("/tmp", 1 << 20, 0o1777, True), *mounts.tmpfs)
    return Plan(**data)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_tree(world: World) -> None:
    world.file("v/out/.env", "v/out/CLAUDE.md", "v/.env.d/x")
    plan = world.plan(mount(world.path("v"), write=("out",)))
    assert boundary(whole(plan)) == [
        "profile t: what the agent sees (rw: reads and writes, ro: reads, --: never sees)",
        "",
        f"ro  {world.path('v')}",
        "    --  .env.d  (masked)",
        "    rw  out  (write root)",
        "        --  .env  (masked)",
        "        ro  CLAUDE.md  (the host runs or obeys it)",
        "rw  /tmp  (gone after the run, nothing in it can be run)",
        "",
        "never: what is not in this tree: the home directory, /etc, /run, other users' files; "
        "2 masked path(s) marked -- above",
        f"never, when made later either: .env .env.* below {world.path('v')}",
        f"later masks are {plan.guards[0].held_by}",
        "",
        "0 error(s), 0 warning(s)",
    ]


def test_colours_only_when_asked(world: World) -> None:
    world.dir("v")
    plan = whole(world.plan(mount(world.path("v")), mount("gone")))
    assert "\x1b" not in "\n".join(boundary(plan))
    painted = "\n".join(boundary(plan, colour=True))
    assert re.sub(r"\x1b\[\d+m", "", painted) == "\n".join(boundary(plan))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\nb\tc", "a\\x0ab\\x09c"),
        ("\x7f\x9b31m", "\\x7f\\x9b31m"),
        ("evil\u202etxt", "evil\\u202etxt"),
        ("\u2028", "\\u2028"),
        ("\udcff", "\\udcff"),
        ("報告 é 🙂", "報告 é 🙂"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
    ],
)
def test_names_do_not_move_the_cursor(name: str, text: str) -> None:
    assert escaped(name) == text


def test_an_agents_names_are_escaped_everywhere(world: World) -> None:
    world.file("v/a\x1b[31m/.env", "v/b\n/CLAUDE.md")
    world.socket("v/c\x1bd")
    lines = boundary(whole(world.plan(mount(world.path("v"), "rw"))))
    assert not [line for line in lines if "\x1b" in line or "\n" in line]


def test_many_masks_are_folded(world: World) -> None:
    world.file(*(f"v/{n:03}/.env" for n in range(40)))
    lines = boundary(whole(world.plan(mount(world.path("v")))))
    assert len([line for line in lines if line.startswith("    --")]) == 12
    assert "    ... and 28 more (masked)" in lines


def test_findings_say_what_why_and_how(world: World) -> None:
    plan = world.plan(mount("vault"))
    assert findings(plan.findings) == [
        "error BWN201 not a path",
        "  at  bawn.toml:7 profile.t",
        "      'vault' is a relative path: write it from / or ~",
        "  why a relative path is a volume's name to docker, an unset variable is nothing",
        "  fix write the path out, from / or ~",
        "1 error(s), 0 warning(s)",
    ]


def test_a_rule_of_somebody_else() -> None:
    one = Finding("BWN999", "warning", "here", "something", "do it")
    assert findings((one,))[0] == "warning BWN999"


def test_overrides_and_what_is_made(world: World) -> None:
    world.dir("home/.aws")
    plan = world.plan(mount("~/.aws", write=("new",), create=True), overrides=(override("~/.aws"),))
    lines = boundary(whole(plan))
    assert "override: ~/.aws: a reason that is long enough" in lines
    assert f"made before the start: {world.path('home/.aws/new')}" in lines
