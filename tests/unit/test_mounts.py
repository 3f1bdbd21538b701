"""`plan.mounts`: the list that is the boundary. Corpus classes M and G12, G13, G15, G16, G18."""

import os
from pathlib import Path

import pytest

from bawn.facts.model import Component, DockerFact, Find, PathFact
from bawn.facts.mountinfo import MountTable, parse
from bawn.plan.access import check
from bawn.plan.covers import EMPTY
from bawn.plan.model import Bind, Identity, Tmpfs
from bawn.plan.mounts import compile_mounts, mount_order
from bawn.plan.regions import Region
from tests.unit.mount_world import PROFILE, World, at, effect, found, mount, override, rules


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def bound(world: World, *mounts: tuple[str, str, str, str]) -> MountTable:
    """(point, file system, its directory, "ro" or "rw") on top of this world's one file system."""
    lines = ["1 0 8:1 / / rw - ext4 d rw\n"]
    for number, (point, fstype, root, mode) in enumerate(mounts):
        device = "8:1" if fstype == "bind" else f"0:{number + 50}"
        kind = "ext4" if fstype == "bind" else fstype
        inside = world.path(root) if fstype == "bind" else "/"
        lines.append(f"{number + 2} 1 {device} {inside} {world.path(point)} {mode} - {kind} d rw\n")
    return MountTable(parse("".join(lines)))


# Sources (M01, M18, M19, G15)


def test_a_missing_source_is_an_error_and_makes_nothing(world: World) -> None:
    """M01"""
    plan = world.plan(mount(world.path("gone")))
    assert rules(plan) == ["BWN202"]
    assert plan.binds == ()
    assert found(plan, "BWN202").fix.startswith(f"mkdir -p {world.path('gone')}")
    assert not os.path.lexists(world.path("gone"))


def test_a_mask_of_a_missing_file_makes_nothing(world: World) -> None:
    """M01"""
    world.dir("repo")
    plan = world.plan(mount(world.path("repo"), "rw"))
    assert rules(plan) == []
    assert [bind.role for bind in plan.binds] == ["mount"]
    assert os.listdir(world.path("repo")) == []
    assert plan.guards[0].patterns == (".env", ".env.*")


@pytest.mark.parametrize("source", ["vault", "./vault", "$HOME/v", "~bob/v", "${X}/v"])
def test_a_source_that_is_no_path(world: World, source: str) -> None:
    """M18"""
    world.dir("vault", "home/v")
    plan = world.plan(mount(source))
    assert rules(plan) == ["BWN201"]
    assert found(plan, "BWN201").place == "bawn.toml:7 profile.t"


def test_tilde_is_expanded_once(world: World) -> None:
    """M18"""
    world.dir("home/v")
    plan = world.plan(mount("~/v"))
    assert plan.binds[0] == Bind(f"{world.home}/v", f"{world.home}/v", "ro", True, "mount")


def test_the_work_directory_is_the_policys(world: World) -> None:
    """The policy lies in `top`, which holds the home: refused; in a project it is not."""
    world.dir("proj")
    assert "BWN105" in rules(world.plan(workdir="."))
    plan = world.plan(workdir="proj")
    assert plan.workdir == world.path("proj")
    assert effect(plan, world.path("proj/x")) == "rw"


def test_a_single_writable_file(world: World) -> None:
    """G15: a program that saves by renaming meets EBUSY."""
    plan = world.plan(mount(world.file("conf/app.json"), "rw"))
    assert rules(plan) == ["BWN220"]
    assert world.path("conf") in found(plan, "BWN220").fix


def test_a_single_read_only_file_keeps_its_inode(world: World) -> None:
    """M19"""
    plan = world.plan(mount(world.file("conf/app.json")))
    assert rules(plan) == []
    assert rules(plan, "warning") == ["BWN221"]
    assert plan.binds[0].is_dir is False


def test_a_file_that_its_own_mask_names(world: World) -> None:
    assert rules(world.plan(mount(world.file("conf/.env")))) == ["BWN310"]
    assert rules(world.plan(mount(world.path("conf/.env"), mask=()))) == []


def test_sources_that_are_doors(world: World) -> None:
    world.socket("s")
    os.mkfifo(world.path("p"))
    assert rules(world.plan(mount(world.path("s")), mount(world.path("p")))) == ["BWN204"] * 2


def test_a_source_that_cannot_be_followed(world: World) -> None:
    world.file("f")
    world.link("loop", "loop")
    plan = world.plan(mount(world.path("f/x")), mount(world.path("loop")))
    assert rules(plan) == ["BWN203", "BWN203"]
    assert f"{world.path('f')} (-rw" in found(plan, "BWN203").message


def test_a_source_behind_a_link_is_the_place_itself(world: World) -> None:
    world.dir("disk/src")
    world.link("src", "disk/src")
    plan = world.plan(mount(world.path("src")))
    assert [bind.target for bind in plan.binds] == [world.path("disk/src")]
    assert world.path("disk/src") in found(plan, "BWN205").message


def test_a_source_that_cannot_be_written_down(world: World) -> None:
    world.dir("x\udc80")
    world.link("l", "x\udc80")
    assert rules(world.plan(mount(world.path("l")))) == ["BWN207"]


def test_a_bad_mask_is_an_error(world: World) -> None:
    world.dir("v")
    plan = world.plan(mount(world.path("v"), mask=("[a", "../x", ".env")))
    assert rules(plan) == ["BWN301", "BWN301"]
    assert plan.guards[0].patterns == (".env",)


def test_masks_off_is_said(world: World) -> None:
    assert "BWN309" in rules(world.plan(mount(world.dir("v"), mask=())), "note")


# Order and nesting


@pytest.mark.parametrize("turned", [False, True])
def test_nested_mounts_never_hide_one_another(world: World, turned: bool) -> None:
    world.dir("a/b/c/d")
    mounts = [
        mount(world.path("a")),
        mount(world.path("a/b"), "rw"),
        mount(world.path("a/b/c")),
        mount(world.path("a/b/c/d"), "rw"),
    ]
    plan = world.plan(*(reversed(mounts) if turned else mounts))
    assert rules(plan) == []
    wanted = {"a": "ro", "a/b": "rw", "a/b/c": "ro", "a/b/c/d": "rw", "a/x": "ro", "a/b/x": "rw"}
    assert {name: effect(plan, world.path(name)) for name in wanted} == wanted


def test_one_place_with_two_modes(world: World) -> None:
    world.dir("v")
    world.link("l", "v")
    plan = world.plan(mount(world.path("v")), mount(world.path("l"), "rw"))
    assert rules(plan) == ["BWN210"]
    assert effect(plan, world.path("v")) == "ro"


def test_one_place_twice(world: World) -> None:
    world.file("v/a", "v/b")
    plan = world.plan(mount(world.path("v"), mask=("a",)), mount(world.path("v/"), mask=("b",)))
    assert rules(plan) == []
    assert rules(plan, "warning") == ["BWN211"]
    assert effect(plan, world.path("v/a")) == effect(plan, world.path("v/b")) == "masked"


def test_one_place_in_two_cases_on_an_insensitive_tree(world: World) -> None:
    """M15"""
    world.dir("v/out", "v/OUT")
    world.probe = lambda fd, entries: True
    plan = world.plan(mount(world.path("v"), write=("out",)), mount(world.path("v/OUT"), "ro"))
    assert rules(plan) == ["BWN210"]


def test_one_directory_by_two_paths(world: World) -> None:
    """A bind mount gives a read-only directory a second, writable name."""
    world.dir("a/b", "m")
    world.table = bound(world, ("m", "bind", "a/b", "rw"))
    assert rules(world.plan(mount(world.path("a")), mount(world.path("m"), "rw"))) == ["BWN212"]
    same = world.plan(mount(world.path("a"), "rw"), mount(world.path("m"), "rw"))
    assert rules(same) == []
    bare = world.plan(mount(world.path("a"), "rw"), mount(world.path("m"), "rw", mask=()))
    assert rules(bare) == ["BWN212"]


def test_mounts_below_tmp_come_after_the_boxs_tmp(world: World) -> None:
    plan = world.plan(mount(world.dir("v")))
    scratch = Tmpfs("/tmp", 1, 0o1777, True)
    order = mount_order(plan.binds, (Tmpfs("/tmp/x", 1, 0o555, True, True, "mask"), scratch))
    assert [one.target for one in order] == ["/tmp", *sorted(("/tmp/x", world.path("v")))]


@pytest.mark.parametrize(("path", "rule"), [("/tmp", "BWN260"), ("/usr/local", "BWN261")])
def test_places_the_box_needs(world: World, path: str, rule: str) -> None:
    assert rule in rules(world.plan(mount(path, "rw")))


def test_programs_of_the_host_are_there_anyway(world: World) -> None:
    plan = world.plan(mount("/usr/share/misc"))
    assert rules(plan) == []
    assert "BWN262" in rules(plan, "note")


# Write roots (M03, M07)


def test_a_write_root_is_mounted_after_its_vault(world: World) -> None:
    world.dir("vault/out", "vault/in")
    plan = world.plan(mount(world.path("vault"), write=("out", "in")))
    assert [(bind.mode, bind.role) for bind in plan.binds] == [
        ("ro", "mount"),
        ("rw", "write-root"),
        ("rw", "write-root"),
    ]
    assert plan.scan == (world.path("vault/in"), world.path("vault/out"))
    assert effect(plan, world.path("vault/x")) == "ro"


def test_a_missing_write_root_never_loosens_the_vault(world: World) -> None:
    """M03"""
    world.dir("vault")
    plan = world.plan(mount(world.path("vault"), write=("out",)))
    assert rules(plan) == ["BWN230"]
    assert effect(plan, world.path("vault/out")) == "ro"
    assert not os.path.lexists(world.path("vault/out"))


def test_a_missing_write_root_is_made_when_asked(world: World) -> None:
    """M03: the plan says so, and nothing is made while planning."""
    world.dir("vault/a")
    world.link("vault/l", "a")
    plan = world.plan(mount(world.path("vault"), write=("l/b/c", "out/"), create=True))
    assert rules(plan) == []
    assert set(rules(plan, "note")) == {"BWN233"}
    assert plan.creates == (
        world.path("vault/a/b"),
        world.path("vault/a/b/c"),
        world.path("vault/out"),
    )
    assert effect(plan, world.path("vault/a/b/c/x")) == "rw"
    assert effect(plan, world.path("vault/out")) == "rw"
    assert not os.path.lexists(world.path("vault/a/b"))


@pytest.mark.parametrize(
    ("link", "to", "root"),
    [
        ("vault/link", "../home/.keys", "link"),
        ("vault/link", "/etc", "link"),
        ("vault/dir", "../other", "dir/out"),
        ("vault/up", "..", "up/other"),
        ("vault/self", ".", "self"),
        ("vault/x", "y", "../other"),
        ("vault/x", "y", "a/../../other"),
        ("vault/x", "y", "/etc"),
        ("vault/x", "y", "~/.keys"),
        ("vault/x", "y", "."),
    ],
)
@pytest.mark.parametrize("create", [False, True])
def test_a_write_root_that_leads_out(world: World, link: str, to: str, root: str, create: bool) -> None:
    """M07"""
    world.dir("vault", "home/.keys", "other/out")
    world.link(link, to)
    plan = world.plan(mount(world.path("vault"), write=(root,), create=create))
    assert rules(plan) == ["BWN231"]
    assert plan.scan == ()
    assert plan.creates == ()
    assert effect(plan, world.path("home/.keys")) == "absent"


def test_a_write_root_behind_a_link_inside_is_its_target(world: World) -> None:
    world.dir("vault/real")
    world.link("vault/link", "real")
    plan = world.plan(mount(world.path("vault"), write=("link",)))
    assert rules(plan) == []
    assert effect(plan, world.path("vault/real")) == "rw"


def test_a_write_root_that_is_a_file(world: World) -> None:
    world.file("vault/inbox.md")
    assert rules(world.plan(mount(world.path("vault"), write=("inbox.md",)))) == ["BWN220"]


def test_a_write_root_of_a_writable_mount_is_said(world: World) -> None:
    plan = world.plan(mount(world.dir("v"), "rw", write=("x",)))
    assert (rules(plan), rules(plan, "note")) == ([], ["BWN232"])


def test_a_link_that_an_agent_can_write_does_not_choose(world: World) -> None:
    """M07: `proj/vendor -> ../private` was made by the agent of an earlier run."""
    world.dir("proj", "private")
    world.link("proj/vendor", "../private")
    world.dir("proj/lib")
    world.link("proj/inner", "lib")
    plan = world.plan(mount(world.path("proj/vendor")), mount(world.path("proj/inner")), workdir="proj")
    assert rules(plan) == ["BWN206"]
    assert effect(plan, world.path("private")) == "absent"
    assert effect(plan, world.path("proj/lib")) == "ro"


def test_a_link_in_a_read_only_tree_may_choose(world: World) -> None:
    world.dir("proj", "shared")
    world.link("proj/vendor", "../shared")
    plan = world.plan(mount(world.path("proj")), mount(world.path("proj/vendor"), "rw"))
    assert rules(plan) == []
    assert effect(plan, world.path("shared")) == "rw"


# Submounts (M05)


def test_a_mount_below_a_read_only_source_is_read_only_itself(world: World) -> None:
    """M05: a read-only bind is not recursive."""
    world.dir("vault/data/deep", "vault/out")
    world.table = bound(world, ("vault/data", "tmpfs", "", "rw"), ("vault/out", "ext4", "", "rw"))
    plan = world.plan(mount(world.path("vault"), write=("out",)))
    assert rules(plan) == []
    sub = at(plan, world.path("vault/data"))
    assert isinstance(sub, Bind)
    assert (sub.mode, sub.source) == ("ro", world.path("vault/data"))
    assert effect(plan, world.path("vault/out")) == "rw"
    assert "BWN250" in rules(plan, "note")


def test_a_mount_below_a_writable_source_keeps_its_own_mode(world: World) -> None:
    world.dir("v/data", "v/ro")
    world.table = bound(world, ("v/data", "xfs", "", "rw"), ("v/ro", "xfs", "", "ro"))
    plan = world.plan(mount(world.path("v"), "rw"))
    assert effect(plan, world.path("v/data/x")) == "rw"
    assert effect(plan, world.path("v/ro/x")) == "ro"


@pytest.mark.parametrize("fstype", ["proc", "sysfs", "autofs", "fuse.portal", "cgroup2", "devtmpfs"])
@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_a_mount_that_is_no_plain_file_system(world: World, fstype: str, mode: str) -> None:
    """M05"""
    world.dir("v/p")
    world.table = bound(world, ("v/p", fstype, "", "rw"))
    assert rules(world.plan(mount(world.path("v"), mode))) == ["BWN251"]  # type: ignore[arg-type]
    masked = world.plan(mount(world.path("v"), mode, mask=("p",)))  # type: ignore[arg-type]
    assert rules(masked) == []
    assert effect(masked, world.path("v/p/1")) == "masked"


def test_a_refused_path_bound_below_a_source(world: World) -> None:
    """A bind mount is no new name for `~/.ssh`, nor for what lies in it or holds it."""
    for root, rule in (("home/.ssh", "BWN106"), ("home/.ssh/deep", "BWN106"), ("home", "BWN105")):
        world.dir("v/p", "home/.ssh/deep")
        world.table = bound(world, ("v/p", "bind", root, "ro"))
        assert rule in rules(world.plan(mount(world.path("v"))))
        assert rule in rules(world.plan(mount(world.path("v/p"))))


# Masks (M08, M15, M19)


def test_masks_cover_files_and_directories(world: World) -> None:
    world.file("v/.env", "v/a/.env.local", "v/secrets/key")
    plan = world.plan(mount(world.path("v"), "rw", mask=(".env", ".env.*", "secrets")))
    assert at(plan, world.path("v/.env")) == Bind(EMPTY, world.path("v/.env"), "ro", False, "mask")
    cover = at(plan, world.path("v/secrets"))
    assert isinstance(cover, Tmpfs)
    assert (cover.role, cover.read_only, cover.mode) == ("mask", True, 0o555)
    assert effect(plan, world.path("v/secrets/key")) == "masked"
    assert effect(plan, world.path("v/a/.env.local")) == "masked"
    assert effect(plan, world.path("v/a/other")) == "rw"


def test_masks_hold_inside_write_roots(world: World) -> None:
    world.file("v/out/.env", "v/out/deep/.env")
    plan = world.plan(mount(world.path("v"), write=("out",)))
    assert effect(plan, world.path("v/out/.env")) == "masked"
    assert effect(plan, world.path("v/out/deep/.env")) == "masked"
    assert effect(plan, world.path("v/out/x")) == "rw"


def test_masked_links(world: World) -> None:
    """M08: the start never fails for a link."""
    world.file("shared/.env", "v/real", "w/inside")
    world.link("v/a/.env", "../../shared/.env")
    world.link("v/b/.env", "../real")
    world.link("v/c/.env", "gone")
    world.link("v/d/.env", world.path("w/inside"))
    world.link("v/e/.env", "..")
    plan = world.plan(mount(world.path("v"), "rw"), mount(world.path("w")))
    assert rules(plan) == []
    assert effect(plan, world.path("v/real")) == "masked"
    assert effect(plan, world.path("w/inside")) == "masked"
    assert effect(plan, world.path("shared/.env")) == "absent"
    assert effect(plan, world.path("v")) == "rw"
    assert rules(plan, "note").count("BWN303") == 1
    assert rules(plan, "note").count("BWN304") == 1
    assert rules(plan, "warning") == ["BWN305", "BWN311", "BWN311"]
    assert not [one for one in plan.binds if one.target.endswith("/.env")]


def test_a_masked_path_cannot_be_moved_away_from_its_pattern(world: World) -> None:
    """`mv conf x` now, and the next run would find no conf/key to mask."""
    world.file("v/conf/deep/key", "v/sub/.env", "v/top")
    masks = ("conf/deep/key", ".env", "/top", "**/sub/.env")
    plan = world.plan(mount(world.path("v"), "rw", mask=masks))
    pins = [bind.target for bind in plan.binds if bind.role == "pin"]
    assert pins == [world.path("v/conf"), world.path("v/conf/deep")]
    assert effect(plan, world.path("v/conf/deep/other")) == "rw"
    assert effect(plan, world.path("v/conf/deep/key")) == "masked"
    read_only = world.plan(mount(world.path("v"), mask=masks))
    assert not [bind for bind in read_only.binds if bind.role == "pin"]


def test_a_mask_in_another_case(world: World) -> None:
    """M15"""
    world.file("v/.Env", "v/.gitignore", "v/.GIT/config")
    world.probe = lambda fd, entries: True
    plan = world.plan(mount(world.path("v"), "rw"))
    assert effect(plan, world.path("v/.Env")) == "masked"
    assert effect(plan, world.path("v/.gitignore")) == "rw"
    assert effect(plan, world.path("v/.GIT/config")) == "ro"


def test_a_masked_name_that_cannot_be_written_down(world: World) -> None:
    """Fails closed: it could not be covered."""
    world.file("v/.env.\udcff")
    plan = world.plan(mount(world.path("v")))
    assert rules(plan) == ["BWN302"]
    for one in plan.findings:
        (one.place + one.message + one.fix).encode()


def test_other_names_of_a_masked_file(world: World) -> None:
    world.file("v/.env")
    os.link(world.path("v/.env"), world.path("v/copy"))
    plan = world.plan(mount(world.path("v")))
    assert rules(plan, "warning") == ["BWN307"]


def test_a_mount_inside_a_masked_directory(world: World) -> None:
    world.dir("v/.env.d/x")
    plan = world.plan(mount(world.path("v")), mount(world.path("v/.env.d/x"), "rw"))
    assert rules(plan) == ["BWN306"]
    assert effect(plan, world.path("v/.env.d/x")) == "masked"


def test_a_write_root_that_is_masked(world: World) -> None:
    world.dir("v/out")
    plan = world.plan(mount(world.path("v"), write=("out",), mask=("out",)))
    assert rules(plan) == ["BWN306"]
    assert effect(plan, world.path("v/out/x")) == "masked"


def test_masks_of_an_outer_mount_hold_in_an_inner_one(world: World) -> None:
    world.file("a/b/.env", "a/b/conf/key")
    plan = world.plan(
        mount(world.path("a"), mask=(".env", "b/conf/key")),
        mount(world.path("a/b"), "rw", mask=()),
    )
    assert effect(plan, world.path("a/b/.env")) == "masked"
    assert effect(plan, world.path("a/b/conf/key")) == "masked"
    guards = {guard.root: guard.patterns for guard in plan.guards}
    assert guards == {
        world.path("a"): (".env", "b/conf/key"),
        world.path("a/b"): (".env", "conf/key"),
        world.path("a/b/conf"): (".env", "/key"),
    }


def test_every_mount_point_has_its_late_masks(world: World) -> None:
    """Seen from inside a pin or a write root, the mount above is another one."""
    world.file("v/out/.git/config", "v/out/.claude/x", "v/sub/x")
    masks = (".env", "out/.git/x/*.pem", "out/**/k", "sub/y")
    plan = world.plan(mount(world.path("v"), write=("out",), mask=masks))
    assert {guard.root[len(world.path("v")) :]: guard.patterns for guard in plan.guards} == {
        "": (".env", "out/.git/x/*.pem", "out/**/k", "out/k", "sub/y"),
        "/out": (".env", ".git/x/*.pem", "k"),
        "/out/.git": (".env", "x/*.pem", "k"),
        "/out/.claude": (".env", "k"),
    }


def test_too_many_covers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bawn.plan.mounts.MAX_COVERS", 5)
    world.file(*(f"v/{n}/.env" for n in range(6)))
    assert rules(world.plan(mount(world.path("v")))) == ["BWN308"]


@pytest.mark.parametrize(("engine", "word"), [("gvisor", "open"), ("docker", "inotify")])
def test_late_masks_say_how_far_they_hold(world: World, engine: str, word: str) -> None:
    """M19: the host saves `.env` by renaming over it."""
    plan = world.plan(mount(world.dir("v")), engine=engine)
    (guard,) = plan.guards
    assert guard.root == world.path("v")
    assert word in guard.held_by


# Files that the host runs (M12, M13)


def test_files_the_host_runs_are_read_only_in_a_writable_tree(world: World) -> None:
    """M12"""
    world.file(
        "v/.git/config", "v/.git/hooks/x", "v/.git/index", "v/vendor/sub/.git/hooks/pre-commit",
        "v/CLAUDE.md", "v/.vscode/tasks.json", "v/bawn.toml", "v/a/bawn.toml", "v/.gitignore",
        "v/.git/modules/m/HEAD", "v/.git/modules/m/objects/x", "v/.git/modules/m/config",
    )  # fmt: skip
    plan = world.plan(mount(world.path("v"), "rw"))
    assert rules(plan) == []
    for name in (
        ".git/config", ".git/hooks/x", "vendor/sub/.git/hooks/pre-commit", "CLAUDE.md", "bawn.toml",
        ".vscode/tasks.json", "a/bawn.toml", ".git/modules/m/config",
    ):  # fmt: skip
        assert effect(plan, world.path(f"v/{name}")) == "ro", name
    for name in (".git/index", ".gitignore", "x", ".git/modules/m/objects/x"):
        assert effect(plan, world.path(f"v/{name}")) == "rw", name


def test_git_directories_are_pinned_but_not_what_holds_them(world: World) -> None:
    world.file("v/sub/.git/config", "v/.git/modules/m/HEAD", "v/.git/modules/m/objects/x",
               "v/.git/modules/m/hooks/x")  # fmt: skip
    plan = world.plan(mount(world.path("v"), "rw"))
    pins = [bind.target for bind in plan.binds if bind.role == "pin"]
    assert pins == [
        world.path(f"v/{name}") for name in (".git", ".git/modules", ".git/modules/m", "sub/.git")
    ]
    assert all(at(plan, path) == Bind(path, path, "rw", True, "pin") for path in pins)


def test_nothing_is_protected_in_a_read_only_tree(world: World) -> None:
    world.file("v/.git/config", "v/CLAUDE.md", "v/out/CLAUDE.md", "v/out/.git/hooks/x")
    plan = world.plan(mount(world.path("v"), write=("out",)))
    assert [bind.target for bind in plan.binds if bind.role == "protect"] == [
        world.path("v/out/.git/hooks"),
        world.path("v/out/CLAUDE.md"),
    ]


def test_what_the_profile_leaves_writable(world: World) -> None:
    world.file("v/CLAUDE.md", "v/a/CLAUDE.md", "v/.git/hooks/x", "v/.git/config", "v/bawn.toml")
    world.file("v/sub/.git/hooks/x")
    allowed = ("CLAUDE.md", ".git/hooks", "bawn.toml", "*.toml")
    plan = world.plan(mount(world.path("v"), "rw"), host_exec=allowed)
    assert rules(plan) == []
    assert effect(plan, world.path("v/a/CLAUDE.md")) == "rw"
    assert effect(plan, world.path("v/.git/hooks/x")) == "rw"
    assert effect(plan, world.path("v/sub/.git/hooks/x")) == "ro"
    assert effect(plan, world.path("v/.git/config")) == "ro"
    assert effect(plan, world.path("v/bawn.toml")) == "ro"  # never
    assert rules(plan, "warning") == ["BWN403"]
    assert rules(plan, "note").count("BWN402") == 3


def test_a_directory_allowed_is_allowed_whole(world: World) -> None:
    world.file("v/.git/hooks/x", "v/.git/config")
    plan = world.plan(mount(world.path("v"), "rw"), host_exec=(".git",))
    assert [bind.role for bind in plan.binds] == ["mount"]


def test_protected_links(world: World) -> None:
    world.file("v/AGENTS.md.real", "out/x")
    world.link("v/CLAUDE.md", "AGENTS.md.real")
    world.link("v/a/CLAUDE.md", world.path("out/x"))
    world.link("v/b/CLAUDE.md", "gone")
    world.link("v/c/.claude", "..")
    plan = world.plan(mount(world.path("v"), "rw"))
    assert rules(plan) == []
    assert rules(plan, "warning") == ["BWN401"] * 4
    assert effect(plan, world.path("v/AGENTS.md.real")) == "ro"
    assert effect(plan, world.path("v/x")) == "rw"
    assert effect(plan, world.path("out/x")) == "absent"


def test_a_protected_name_that_cannot_be_written_down(world: World) -> None:
    world.file("v/\udcff/CLAUDE.md")
    assert rules(world.plan(mount(world.path("v"), "rw"))) == ["BWN404"]
    assert rules(world.plan(mount(world.path("v")))) == []


def test_a_protected_directory_with_a_mount_in_it(world: World) -> None:
    """The inner mount is writable again, and what the host runs in it is protected again."""
    world.file("v/.claude/worktrees/w/CLAUDE.md", "v/.claude/worktrees/w/x", "v/.claude/s.json")
    plan = world.plan(mount(world.path("v"), "rw"), mount(world.path("v/.claude/worktrees/w"), "rw"))
    assert rules(plan) == []
    assert effect(plan, world.path("v/.claude/s.json")) == "ro"
    assert effect(plan, world.path("v/.claude/worktrees/w/x")) == "rw"
    assert effect(plan, world.path("v/.claude/worktrees/w/CLAUDE.md")) == "ro"


def test_a_mask_wins_over_a_protected_file(world: World) -> None:
    world.file("v/CLAUDE.md", "v/.git/hooks/x", "v/.git/config")
    plan = world.plan(mount(world.path("v"), "rw", mask=("CLAUDE.md", ".git")))
    assert effect(plan, world.path("v/CLAUDE.md")) == "masked"
    assert effect(plan, world.path("v/.git/hooks/x")) == "masked"
    assert not [bind for bind in plan.binds if bind.role in ("protect", "pin")]


@pytest.mark.parametrize("name", ["v/.git/hooks", "v/.vscode", "v/.husky"])
def test_a_writable_mount_of_what_the_host_runs(world: World, name: str) -> None:
    world.dir(name)
    last = name.rpartition("/")[2]
    assert rules(world.plan(mount(world.path(name), "rw"))) == ["BWN405"]
    assert rules(world.plan(mount(world.path(name)))) == []
    assert rules(world.plan(mount(world.path(name), "rw"), host_exec=(last,))) == []


def test_a_policy_by_another_name_is_never_writable(world: World) -> None:
    world.policy = world.file("v/conf/team.toml")
    plan = world.plan(mount(world.path("v"), "rw"), host_exec=("team.toml",))
    assert effect(plan, world.policy) == "ro"
    assert world.plan(mount(world.path("v"))).binds[0].role == "mount"


def test_git_is_never_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """M13: a poisoned config names programs; planning starts none."""
    marker = world.path("marker")
    world.file("v/.git/HEAD", text="ref: refs/heads/main\n")
    world.file("v/.git/objects/x")
    world.file(
        "v/.git/config",
        text=f"[core]\nfsmonitor = touch {marker}\npager = touch {marker}\nhooksPath = h\n"
        f'[diff "x"]\nexternal = touch {marker}\n[filter "x"]\nclean = touch {marker}\n',
    )
    world.file("v/.gitattributes", text="* filter=x diff=x\n")
    world.file("v/h/pre-commit")
    for name in ("fork", "posix_spawn", "posix_spawnp", "execve", "system"):
        monkeypatch.setattr(os, name, lambda *_: pytest.fail("a program was started"))
    plan = world.plan(mount(world.path("v"), "rw"))
    assert effect(plan, world.path("v/h/pre-commit")) == "ro"
    assert not os.path.exists(marker)


# Sockets and the unreadable (M16)


def test_sockets_below_a_source(world: World) -> None:
    """M16: read-only does not stop connect()."""
    for at_path in ("v/a.sock", "v/deep/er/b.sock"):
        world.socket(at_path)
    plan = world.plan(mount(world.path("v")))
    assert rules(plan) == ["BWN240", "BWN240"]
    assert 'mask = ["a.sock"]' in found(plan, "BWN240").fix
    assert rules(world.plan(mount(world.path("v"), mask=("a.sock", "deep")))) == []


def test_many_sockets_are_counted(world: World) -> None:
    for number in range(25):
        world.socket(f"v/{number:02}.sock")
    plan = world.plan(mount(world.path("v")))
    assert len(rules(plan)) == 21
    assert "and 5 more" in plan.findings[20].message


def test_pipes_are_noted(world: World) -> None:
    world.dir("v")
    os.mkfifo(world.path("v/p"))
    plan = world.plan(mount(world.path("v")))
    assert (rules(plan), rules(plan, "note")) == ([], ["BWN241"])


@pytest.mark.parametrize(
    ("owner", "mode", "rw", "rule"),
    [
        (4000, 0o700, "rw", "BWN281"),  # a database's directory: the box cannot enter either
        (4000, 0o711, "ro", "BWN280"),  # names in it can be guessed
        (1234, 0o000, "rw", "BWN280"),  # its owner is the box, which can open it up
        (1234, 0o000, "ro", "BWN281"),  # but not through a read-only mount
    ],
)
def test_directories_that_could_not_be_read(world: World, owner: int, mode: int, rw: str, rule: str) -> None:
    world.dir("v/shut")
    profile = PROFILE._replace(mounts=(mount(world.path("v"), rw),))  # type: ignore[arg-type]
    facts = world.facts(profile)
    shut = Component(world.path("v/shut"), owner, owner, mode, 0, 0)
    facts = facts._replace(trees=(facts.trees[0]._replace(unreadable=(shut,)),))
    identity = Identity(1000, 1000, 1234, 1234, False)
    plan = compile_mounts(profile, facts, identity)
    assert found(plan, rule).place == world.path("v/shut")


def test_devices_and_what_lies_too_deep(world: World) -> None:
    world.dir("v")
    profile = PROFILE._replace(mounts=(mount(world.path("v")),))
    facts = world.facts(profile)
    tree = facts.trees[0]
    finds = (Find("device", world.path("v/null"), False),)
    deep = world.path("v") + "/d" * 2100
    facts = facts._replace(trees=(tree._replace(finds=finds, too_deep=(deep,)),))
    plan = compile_mounts(profile, facts, world.identity())
    assert rules(plan) == ["BWN282"]
    assert rules(plan, "warning") == ["BWN242"]
    assert len(found(plan, "BWN282").message) < 200


def test_a_tree_that_was_not_walked_is_not_mounted(world: World) -> None:
    profile = PROFILE._replace(mounts=(mount(world.dir("v")),))
    plan = compile_mounts(profile, world.facts(profile)._replace(trees=()), world.identity())
    assert rules(plan) == ["BWN208"]
    assert plan.binds == ()


# Worktrees and submodules (M09)


def worktree(world: World, back: str = "wt") -> None:
    world.file("main/.git/HEAD", "main/.git/objects/x", "main/.git/config", "main/.git/hooks/x")
    world.file("main/.git/worktrees/w/HEAD", "main/.git/index")
    world.file("main/.git/worktrees/w/commondir", text="../..\n")
    world.file("main/.git/worktrees/w/gitdir", text=world.path(f"{back}/.git") + "\n")
    world.file("wt/.git", text=f"gitdir: {world.path('main/.git/worktrees/w')}\n")


def test_a_worktree_is_said_with_the_line_to_write(world: World) -> None:
    worktree(world)
    plan = world.plan(workdir="wt")
    assert rules(plan) == []
    warning = found(plan, "BWN601")
    assert "git_links = true" in warning.fix
    assert world.path("main/.git") in warning.fix
    assert effect(plan, world.path("wt/.git")) == "ro"  # the pointer itself is git's config


def test_a_worktree_with_git_links(world: World) -> None:
    worktree(world)
    plan = world.plan(workdir="wt", git_links=True)
    assert rules(plan) == []
    assert effect(plan, world.path("main/.git/index")) == "rw"
    for name in ("config", "hooks/x", "worktrees/w/commondir", "worktrees/w/gitdir"):
        assert effect(plan, world.path(f"main/.git/{name}")) == "ro", name
    assert effect(plan, world.path("main/README")) == "absent"
    assert world.path("main/.git") in plan.scan
    assert "BWN604" in rules(plan, "note")


def test_a_read_only_worktree_links_read_only(world: World) -> None:
    worktree(world)
    plan = world.plan(workdir="wt", workdir_mode="ro", git_links=True)
    assert effect(plan, world.path("main/.git/index")) == "ro"


def test_a_pointer_without_an_answer_is_not_mounted(world: World) -> None:
    """An agent rewrote the `.git` file of its tree to have another repository mounted."""
    worktree(world, back="somewhere/else")
    plan = world.plan(workdir="wt", git_links=True)
    assert rules(plan, "warning") == ["BWN602"]
    assert effect(plan, world.path("main/.git/index")) == "absent"


def test_a_pointer_to_nothing_is_noted(world: World) -> None:
    world.file("v/.git", text="gitdir: /gone/.git/worktrees/w\n")
    plan = world.plan(mount(world.path("v"), "rw"), git_links=True)
    assert rules(plan) == []
    assert "BWN603" in rules(plan, "note")


def test_git_links_do_not_reach_refused_paths(world: World) -> None:
    """Both ends may be an agent's, but where they meet must not be refused."""
    worktree(world)
    os.makedirs(world.path("home"), exist_ok=True)
    os.rename(world.path("main"), world.path("home/.ssh"))
    world.file("wt/.git", text=f"gitdir: {world.path('home/.ssh/.git/worktrees/w')}\n")
    plan = world.plan(workdir="wt", git_links=True)
    assert rules(plan) == ["BWN106"]
    assert effect(plan, world.path("home/.ssh/.git/index")) == "absent"


def test_a_pointer_inside_the_mounts_is_ordinary(world: World) -> None:
    world.file("v/.git/modules/s/HEAD")
    world.file("v/.git/modules/s/config", text="[core]\n\tworktree = ../../../s\n")
    world.file("v/s/.git", text="gitdir: ../.git/modules/s\n")
    plan = world.plan(mount(world.path("v"), "rw"))
    assert [one for one in plan.findings if one.rule.startswith("BWN6")] == []


# Ownership (M21, G13)


def owned(world: World, path: str, mode: int, uid: int = -1, gid: int = -1) -> str:
    os.chmod(world.dir(path), mode)
    if uid >= 0 and os.getuid() == 0:
        os.chown(world.path(path), uid, gid)
    return world.path(path)


def for_uid(world: World, uid: int, *mounts: object, **fields: object) -> object:
    profile = PROFILE._replace(mounts=mounts, **fields)  # type: ignore[arg-type]
    facts = world.facts(profile)
    # The temp dir itself may be closed to others: only what lies in the world is judged here.
    top = str(world.top)
    paths = tuple(
        fact._replace(chain=tuple(one for one in fact.chain if one.path.startswith(top + "/")))
        for fact in facts.paths
    )
    identity = Identity(1000, 1000, uid, uid, False)
    return compile_mounts(profile, facts._replace(paths=paths), identity)


STRANGER = 54321


def test_the_component_that_bars_is_named(world: World) -> None:
    """G13"""
    owned(world, "shut", 0o700)
    owned(world, "shut/v", 0o755)
    plan = for_uid(world, STRANGER, mount(world.path("shut/v")))
    error = found(plan, "BWN501")  # type: ignore[arg-type]
    me = f"{os.getuid()}:{os.getgid()}"
    assert error.message.startswith(f"{world.path('shut')} (rwx------, owner {me}) bars")
    assert error.fix.startswith(f"chmod o+x {world.path('shut')}")


@pytest.mark.parametrize(
    ("mode", "wanted", "rule"),
    [
        (0o755, "ro", None),
        (0o755, "rw", "BWN503"),
        (0o777, "rw", None),
        (0o711, "ro", "BWN502"),
        (0o750, "ro", "BWN506"),
        (0o744, "ro", "BWN502"),
    ],
)
def test_the_boxs_user_is_let_in(world: World, mode: int, wanted: str, rule: str | None) -> None:
    """M21"""
    owned(world, "v", mode)
    plan = for_uid(world, STRANGER, mount(world.path("v"), wanted))  # type: ignore[arg-type]
    severe = [one.rule for one in plan.findings if one.rule.startswith("BWN5")]  # type: ignore[attr-defined]
    assert severe == ([rule] if rule else [])


def test_a_work_directory_that_cannot_be_written_is_a_warning(world: World) -> None:
    owned(world, "v", 0o755)
    plan = for_uid(world, STRANGER, workdir="v")
    assert rules(plan) == []  # type: ignore[arg-type]
    assert rules(plan, "warning") == ["BWN504"]  # type: ignore[arg-type]


def test_the_owner_is_let_in(world: World) -> None:
    owned(world, "shut", 0o700)
    owned(world, "shut/v", 0o700)
    plan = for_uid(world, os.getuid(), mount(world.path("shut/v"), "rw"))
    assert rules(plan) == []  # type: ignore[arg-type]


def test_a_write_root_of_another_user(world: World) -> None:
    owned(world, "v", 0o755)
    owned(world, "v/out", 0o755)
    plan = for_uid(world, STRANGER, mount(world.path("v"), write=("out",)))
    assert rules(plan) == ["BWN503"]  # type: ignore[arg-type]


def test_below_root_in_an_image(world: World) -> None:
    """M21, G13: /root of an image is closed to uid 1000."""
    fact = PathFact("/root/src", "/root/src", "dir", 0, 0, 0o755)
    region = Region("/root/src", "ro", "mount", True, fact, "here")
    assert [one.rule for one in check(region, 0, 0, image_rootfs=True)] == ["BWN505"]
    assert check(region, 0, 0, image_rootfs=False) == []


# Engines (M22, M20)


def test_a_daemon_elsewhere(world: World) -> None:
    """M22"""
    profile = PROFILE._replace(mounts=(mount(world.dir("v")),), engine="docker")
    facts = world.facts(profile)
    docker = DockerFact("docker", "tcp://10.0.0.1:2376", "24", remote=True)
    plan = compile_mounts(profile, facts._replace(docker=docker), world.identity())
    assert rules(plan) == ["BWN270"]
    near = facts._replace(docker=docker._replace(remote=False))
    assert rules(compile_mounts(profile, near, world.identity())) == []


def test_bawns_own_state_is_never_in_a_box(world: World) -> None:
    """M22: an agent that writes its own approvals."""
    for directory in world.own:
        os.makedirs(directory, exist_ok=True)
        for path in (directory, os.path.dirname(directory), f"{directory}/x"):
            os.makedirs(path, exist_ok=True)
            plan = world.plan(mount(path), overrides=(override(path), override(directory)))
            assert "BWN110" in rules(plan), path
            assert effect(plan, f"{directory}/runs.jsonl") == "absent"


# What the box promises of its own places (G12, G16, G18)


def test_nothing_is_promised_outside_mounts(world: World) -> None:
    """G12: what is not a writable mount is gone after the run, and no bind says otherwise."""
    plan = world.plan(mount(world.dir("v")), mount(world.dir("w"), "rw"))
    assert [bind.target for bind in plan.binds if bind.mode == "rw"] == [world.path("w")]
    assert plan.scan == (world.path("w"),)


def test_root_is_never_a_source(world: World) -> None:
    """G18: no bundle shows the host's `/`, and no override makes one."""
    plan = world.plan(mount("/"), overrides=(override("/"),))
    assert "BWN101" in rules(plan)
    assert plan.binds == ()


def test_a_mount_does_not_make_tmp_executable_or_hide_the_home(world: World) -> None:
    """G16: TMPDIR lies in the box's home, which no mount may cover."""
    plan = world.plan(mount("/tmp", "rw"))
    assert "BWN260" in rules(plan)
    assert at(plan, "/tmp") is None


def test_findings_come_in_order_and_once(world: World) -> None:
    world.socket("v/s")
    plan = world.plan(mount(world.path("v")), mount(world.path("gone")), mount(world.path("gone")))
    assert rules(plan) == ["BWN202", "BWN240"]
    severities = [one.severity for one in plan.findings]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
