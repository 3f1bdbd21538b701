"""`facts.tree` and `facts.walker`: one walk, hostile trees, and everything a plan must know."""

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bawn.facts import tree, walker
from bawn.facts.model import Find, TreeFact
from bawn.facts.mountinfo import MountTable, parse
from bawn.policy.model import DEFAULT_MASK
from tests.unit.mount_world import PROFILE, World, mount


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def finds(fact: TreeFact, kind: str) -> dict[str, Find]:
    """By path relative to the source."""
    return {f.path[len(fact.source) + 1 :]: f for f in fact.finds if f.kind == kind}


# Sockets and their like


def test_sockets_anywhere(world: World) -> None:
    """M16"""
    world.socket("v/run/docker.sock")
    world.socket("v/.git/fsmonitor--daemon.ipc")
    world.file("v/run/file")
    os.mkfifo(world.path("v/pipe"))
    fact = tree.walk(world.path("v"))
    assert set(finds(fact, "socket")) == {"run/docker.sock", ".git/fsmonitor--daemon.ipc"}
    assert set(finds(fact, "fifo")) == {"pipe"}


def test_a_masked_socket_is_a_mask(world: World) -> None:
    world.socket("v/x.sock")
    world.socket("v/dir/y.sock")
    fact = tree.walk(world.path("v"), ("*.sock", "dir"))
    assert finds(fact, "socket") == {}
    assert set(finds(fact, "mask")) == {"x.sock", "dir"}


# Masks


def test_masks_files_directories_and_what_is_inside(world: World) -> None:
    world.file("v/.env", "v/a/.env.local", "v/.envrc", "v/.env.d/secret/.env", "v/a/env")
    fact = tree.walk(world.path("v"), DEFAULT_MASK)
    masks = finds(fact, "mask")
    assert set(masks) == {".env", "a/.env.local", ".env.d"}
    assert masks[".env.d"].is_dir
    assert masks[".env"].detail == ".env"


def test_masked_links_inside_outside_dangling(world: World) -> None:
    """M08"""
    world.file("shared/.env", "v/real/secret")
    world.link("v/.env", "../shared/.env")
    world.link("v/in/.env", "../real/secret")
    world.link("v/gone/.env", "nowhere")
    world.link("v/loop/.env", ".env")
    world.link("v/dir/.env", "../real")
    masks = finds(tree.walk(world.path("v"), (".env",)), "mask")
    assert masks[".env"].target == world.path("shared/.env")
    assert masks["in/.env"].target == world.path("v/real/secret")
    assert masks["gone/.env"].target == "?"
    assert masks["loop/.env"].target == "?"
    assert (masks["dir/.env"].target, masks["dir/.env"].is_dir) == (world.path("v/real"), True)


def test_hard_links_of_a_masked_file_are_counted(world: World) -> None:
    world.file("v/.env")
    os.link(world.path("v/.env"), world.path("v/copy"))
    assert finds(tree.walk(world.path("v"), (".env",)), "mask")[".env"].names == 2


def test_links_are_never_walked(world: World) -> None:
    world.file("outside/.env", "v/x")
    world.link("v/door", "../outside")
    world.link("v/self", ".")
    fact = tree.walk(world.path("v"), (".env",))
    assert fact.finds == ()
    assert fact.entries == 3


def test_names_in_another_case(world: World) -> None:
    """M15, on a tree that says of itself that it ignores case."""
    world.file("v/.GIT/Config", "v/.Env", "v/.gitignore", "v/Claude.MD", "v/BAWN.TOML")
    folded = tree.walk(world.path("v"), (".env",), probe=lambda fd, entries: True)
    assert folded.casefold
    assert set(finds(folded, "mask")) == {".Env"}
    assert set(finds(folded, "host-exec")) == {".GIT/Config", "Claude.MD"}
    assert set(finds(folded, "policy")) == {"BAWN.TOML"}
    exact = tree.walk(world.path("v"), (".env",), probe=lambda fd, entries: False)
    assert exact.finds == ()


def test_case_is_probed_by_inode(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.file("v/abc")
    assert not tree.walk(world.path("v")).casefold
    real = os.stat

    def insensitive(path: Any, *rest: Any, **named: Any) -> os.stat_result:
        return real("abc" if path == "ABC" else path, *rest, **named)

    monkeypatch.setattr(os, "stat", insensitive)
    assert tree.walk(world.path("v")).casefold


def test_case_where_no_name_has_a_letter(world: World) -> None:
    world.file("v/123")
    assert not tree.walk(world.path("v")).casefold


# Files that the host runs


def test_git_files_nested_and_of_submodules(world: World) -> None:
    """M12"""
    world.file(
        "v/.git/config",
        "v/.git/HEAD",
        "v/.git/hooks/pre-commit",
        "v/.git/config.worktree",
        "v/.git/modules/sub/HEAD",
        "v/.git/modules/sub/objects/x",
        "v/.git/modules/sub/config",
        "v/.git/modules/sub/hooks/x",
        "v/.git/worktrees/w/HEAD",
        "v/.git/worktrees/w/commondir",
        "v/.git/worktrees/w/gitdir",
        "v/vendor/sub/.git/hooks/pre-commit",
        "v/src/hooks/useThing.ts",
        "v/src/config",
        "v/.gitignore",
        "v/.gitattributes",
    )
    assert set(finds(tree.walk(world.path("v")), "host-exec")) == {
        ".git/config",
        ".git/hooks",
        ".git/config.worktree",
        ".git/modules/sub/config",
        ".git/modules/sub/hooks",
        ".git/worktrees/w/commondir",
        ".git/worktrees/w/gitdir",
        "vendor/sub/.git/hooks",
    }


def test_a_bare_repository_is_one_by_what_it_holds(world: World) -> None:
    """git takes an embedded bare repository for one too, and runs what its config names."""
    world.file("v/docs/evil/HEAD", "v/docs/evil/objects/x", "v/docs/evil/config")
    world.file("v/docs/good/HEAD", "v/docs/good/config")
    assert set(finds(tree.walk(world.path("v")), "host-exec")) == {"docs/evil/config"}


def test_a_source_that_is_a_git_directory(world: World) -> None:
    world.file("v/.git/config", "v/.git/hooks/x")
    assert set(finds(tree.walk(world.path("v/.git")), "host-exec")) == {"config", "hooks"}


def test_what_the_git_config_names(world: World) -> None:
    world.file("v/.git/HEAD", "v/ci/hooks/pre-push", "v/more.config", "v/x/.git/HEAD")
    world.file("v/.git/config", text='[core]\n\thooksPath = ci/hooks\n[include] path = "../more.config"\n')
    world.file("v/x/.git/config", text="[core]\nhookspath = /etc\n[CORE]\nhooksPath=../../outside\n")
    host = finds(tree.walk(world.path("v")), "host-exec")
    assert set(host) == {".git/config", "x/.git/config", "ci/hooks", "more.config"}
    assert host["ci/hooks"].is_dir


@pytest.mark.parametrize(
    "name",
    [
        "CLAUDE.md", "a/AGENTS.md", ".claude/settings.json", ".mcp.json", ".vscode/tasks.json",
        ".idea/workspace.xml", "shop.code-workspace", ".envrc", ".husky/pre-commit", ".bashrc",
        "dotfiles/.config/fish/config.fish", ".github/copilot-instructions.md", ".cursorrules",
        ".devcontainer/devcontainer.json", ".gitconfig", ".pre-commit-config.yaml", ".zshenv",
    ],
)  # fmt: skip
def test_the_table_of_host_executed_files(world: World, name: str) -> None:
    world.file(f"v/{name}", "v/Makefile", "v/package.json", "v/.github/workflows/ci.yml")
    host = finds(tree.walk(world.path("v"), ()), "host-exec")
    assert len(host) == 1
    path, find = next(iter(host.items()))
    assert name == path or name.startswith(path + "/")
    assert find.detail


def test_policies_nested_too(world: World) -> None:
    world.file("v/bawn.toml", "v/a/b/bawn.toml")
    world.link("v/c/bawn.toml", "../a/b/bawn.toml")
    fact = tree.walk(world.path("v"))
    assert set(finds(fact, "policy")) == {"bawn.toml", "a/b/bawn.toml", "c/bawn.toml"}
    assert finds(fact, "policy")["c/bawn.toml"].target == world.path("v/a/b/bawn.toml")


# Git's pointers


def repository(world: World, worktree: str, relative: bool = False) -> None:
    """A repository at main/.git with a linked worktree, as git makes them."""
    world.file("main/.git/HEAD", "main/.git/objects/x", "main/.git/config")
    world.file("main/.git/worktrees/w/HEAD")
    world.file("main/.git/worktrees/w/commondir", text="../..\n")
    world.file("main/.git/worktrees/w/gitdir", text=world.path(f"{worktree}/.git") + "\n")
    to = "../main/.git/worktrees/w" if relative else world.path("main/.git/worktrees/w")
    world.file(f"{worktree}/.git", text=f"gitdir: {to}\n")


@pytest.mark.parametrize("relative", [False, True])
def test_a_worktree(world: World, relative: bool) -> None:
    """M09"""
    repository(world, "wt", relative)
    fact = tree.walk(world.path("wt"))
    (link,) = fact.gitfiles
    assert link.gitdir == world.path("main/.git/worktrees/w")
    assert link.common == world.path("main/.git")
    assert link.acknowledged
    assert set(finds(fact, "gitfile")) == {".git"}


def test_a_real_worktree_and_submodule(world: World) -> None:
    """As git itself writes them. git runs here in trees of our own making only."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": world.home,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "file",
    }

    def git(*words: str, at: str) -> None:
        who = (
            "-c",
            "user.name=n",
            "-c",
            "user.email=e@example.test",
            "-c",
            "protocol.file.allow=always",
        )
        subprocess.run(["git", *who, *words], cwd=world.dir(at), env=env, check=True, capture_output=True)

    for name in ("main", "lib"):
        git("init", "-q", at=name)
        git("commit", "-q", "--allow-empty", "-m", "x", at=name)
    git("worktree", "add", "-q", world.path("wt"), at="main")
    git("submodule", "--quiet", "add", world.path("lib"), "sub", at="main")
    (work,) = tree.walk(world.path("wt")).gitfiles
    assert (work.common, work.acknowledged) == (world.path("main/.git"), True)
    (sub,) = tree.walk(world.path("main/sub")).gitfiles
    assert (sub.common, sub.acknowledged) == (world.path("main/.git/modules/sub"), True)
    assert sub.gitdir == sub.common


def test_a_pointer_that_nobody_answers(world: World) -> None:
    """An agent may write any pointer: the other end has to know of it."""
    repository(world, "wt")
    world.file("evil/.git", text=f"gitdir: {world.path('main/.git/worktrees/w')}\n")
    world.file("evil/sub/.git", text=f"gitdir: {world.path('main/.git')}\n")
    assert [link.acknowledged for link in tree.walk(world.path("evil")).gitfiles] == [False, False]


@pytest.mark.parametrize("text", ["", "gitdir: ", "gitdir: gone", "x", "gitdir: \0", "gitdir: " + "a" * 9000])
def test_a_pointer_to_nothing(world: World, text: str) -> None:
    world.file("v/.git", text=text)
    (link,) = tree.walk(world.path("v")).gitfiles
    assert (link.gitdir, link.common, link.acknowledged) == ("", "", False)


def test_pointers_are_read_without_blocking(world: World) -> None:
    world.file("v/.git", text=f"gitdir: {world.path('g')}\n")
    world.file("g/HEAD")
    os.mkfifo(world.path("g/commondir"))
    (link,) = tree.walk(world.path("v")).gitfiles
    assert link.gitdir == world.path("g")


def test_a_git_directory_behind_a_link(world: World) -> None:
    world.file("else/.git/HEAD")
    world.link("v/.git", "../else/.git")
    fact = tree.walk(world.path("v"))
    assert fact.gitfiles[0].common == world.path("else/.git")
    assert finds(fact, "gitfile")[".git"].target == world.path("else/.git")


# Nested sources, submounts


def observed(world: World, *sources: str, table: MountTable | None = None) -> dict[str, TreeFact]:
    profile = PROFILE._replace(mounts=tuple(mount(world.path(name)) for name in sources))
    world.table = table
    return {fact.source[len(str(world.top)) + 1 :]: fact for fact in world.facts(profile).trees}


def count_scandir(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(device, inode) of every directory that is listed."""
    listed: list[tuple[int, int]] = []
    real: Callable[[Any], Any] = os.scandir

    def counted(what: Any) -> Any:
        info = os.stat(what)
        listed.append((info.st_dev, info.st_ino))
        return real(what)

    monkeypatch.setattr(os, "scandir", counted)
    return listed


def test_every_directory_is_listed_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.file("a/x/.env", "a/b/.env", "a/b/c/.env", "a/b/c/d/.env", "z/.env")
    listed = count_scandir(monkeypatch)
    facts = observed(world, "a/b/c", "a", "z", "a/b")
    assert len(listed) == len(set(listed)) == 6
    assert {name: set(finds(fact, "mask")) for name, fact in facts.items()} == {
        "a": {"x/.env"},
        "a/b": {".env"},
        "a/b/c": {".env", "d/.env"},
        "z": {".env"},
    }


def test_masks_of_an_outer_source_hold_in_an_inner_one(world: World) -> None:
    world.file("a/b/k.pem", "a/b/own", "a/b/c/own")
    profile = PROFILE._replace(
        mounts=(
            mount(world.path("a"), mask=("*.pem", "b/c/own")),
            mount(world.path("a/b"), mask=("own",)),
        )
    )
    inner = next(t for t in world.facts(profile).trees if t.source == world.path("a/b"))
    assert set(finds(inner, "mask")) == {"k.pem", "own", "c/own"}


def test_a_source_inside_a_masked_directory_is_walked_by_itself(world: World) -> None:
    world.file("a/.env.d/x/.env")
    assert set(finds(observed(world, "a", "a/.env.d/x")["a/.env.d/x"], "mask")) == {".env"}


def test_home_and_what_holds_it_are_not_walked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.file("home/deep/x")
    listed = count_scandir(monkeypatch)
    assert observed(world, "home", "") == {}
    assert listed == []


def test_submounts_are_listed_with_their_kind(world: World) -> None:
    world.file("v/data/x", "v/proc/.env", "v/data/.env", "v-x/y")
    text = (
        "1 0 8:1 / / rw - ext4 d rw\n"
        f"2 1 8:2 / {world.path('v/data')} ro - ext4 e rw\n"
        f"3 1 0:9 / {world.path('v/proc')} rw - proc proc rw\n"
        f"4 1 0:10 / {world.path('v-x')} rw - tmpfs t rw\n"
    )
    fact = observed(world, "v", table=MountTable(parse(text)))["v"]
    assert [(s.point, s.fstype, s.read_only) for s in fact.submounts] == [
        (world.path("v/data"), "ext4", True),
        (world.path("v/proc"), "proc", False),
    ]
    assert set(finds(fact, "mask")) == {"data/.env"}  # what is not plain is not walked


# Hostile trees


def deep(world: World, name: str, levels: int) -> None:
    """A chain of directories that no absolute path reaches the end of."""
    at = os.open(world.dir(name), os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 100, dir_fd=at)
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open(".env", os.O_WRONLY | os.O_CREAT, dir_fd=at))
    os.close(at)


def remove_deep(path: str) -> None:
    subprocess.run(["rm", "-rf", path], check=True)


def test_deeper_than_a_path_can_be(world: World) -> None:
    deep(world, "v/a", 60)
    world.file("v/z/.env")
    fact = tree.walk(world.path("v"), (".env",))
    remove_deep(world.path("v/a"))
    assert set(finds(fact, "mask")) == {"z/.env"}
    assert len(fact.too_deep) == 1
    assert len(fact.too_deep[0]) >= walker.PATH_MAX


def test_few_descriptors_however_deep(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walker, "MAX_OPEN", 4)
    world.file("v/" + "/".join("abcdefghijklmn") + "/.env")
    for at in range(14):
        world.file("v/" + "/".join("abcdefghijklmn"[:at]) + "/~side/.env")
    before = len(os.listdir("/proc/self/fd"))
    most = 0
    real = os.open

    def counted(*words: Any, **named: Any) -> int:
        nonlocal most
        fd = real(*words, **named)
        most = max(most, fd)
        return fd

    monkeypatch.setattr(os, "open", counted)
    fact = tree.walk(world.path("v"), (".env",))
    assert len(finds(fact, "mask")) == 15
    assert fact.unreadable == ()
    assert len(os.listdir("/proc/self/fd")) == before
    assert most <= before + 8


def test_a_directory_that_moves_while_it_is_walked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walker, "MAX_OPEN", 2)
    world.file("v/a/b/c/d/x", "v/a/later/.env", "v/elsewhere/x")
    real: Callable[[Any], Any] = os.scandir
    moved = False

    def moving(fd: Any) -> Any:
        nonlocal moved
        found = real(fd)
        if os.readlink(f"/proc/self/fd/{fd}").endswith("/d") and not moved:
            moved = True
            os.rename(world.path("v/a/b"), world.path("v/elsewhere/b"))
        return found

    monkeypatch.setattr(os, "scandir", moving)
    fact = tree.walk(world.path("v"), (".env",))
    seen = set(finds(fact, "mask")) | {one.path for one in fact.unreadable}
    assert seen & {"a/later/.env", world.path("v/a/later")} or not moved


def test_entries_that_go_away(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.file("v/.env", "v/d/x", "v/e/x")
    real: Callable[[Any], Any] = os.scandir

    def going(fd: Any) -> Any:
        entries = list(real(fd))
        subprocess.run(["rm", "-rf", *(world.path(f"v/{e.name}") for e in entries)], check=True)

        class Context:
            def __enter__(self) -> Any:
                return iter(entries)

            def __exit__(self, *_: object) -> None:
                pass

        return Context()

    monkeypatch.setattr(os, "scandir", going)
    assert tree.walk(world.path("v"), (".env",)).finds == ()


def test_a_directory_swapped_for_a_link(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between listing and opening, an agent's process puts a link in its place."""
    world.file("v/d/x", "secret/.env")
    real = os.open

    def swapped(path: Any, *rest: Any, **named: Any) -> int:
        if path == "d":
            os.rename(world.path("v/d"), world.path("v/d2"))
            os.symlink(world.path("secret"), world.path("v/d"))
        return real(path, *rest, **named)

    monkeypatch.setattr(os, "open", swapped)
    fact = tree.walk(world.path("v"), (".env",))
    assert finds(fact, "mask") == {}
    assert [one.path for one in fact.unreadable] == [world.path("v/d")]


def test_a_directory_that_cannot_be_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.dir("v/shut", "v/open")
    os.chmod(world.path("v/shut"), 0o300)
    real = os.open

    def barred(path: Any, *rest: Any, **named: Any) -> int:
        if path == "shut":
            raise PermissionError(13, "Permission denied")
        return real(path, *rest, **named)

    monkeypatch.setattr(os, "open", barred)
    fact = tree.walk(world.path("v"))
    assert [(one.path, one.mode, one.uid) for one in fact.unreadable] == [
        (world.path("v/shut"), 0o300, os.getuid())
    ]


def test_a_listing_that_breaks_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.file("v/d/x")
    real: Callable[[Any], Any] = os.scandir

    def broken(fd: Any) -> Any:
        if os.readlink(f"/proc/self/fd/{fd}").endswith("/d"):
            raise OSError(5, "Input/output error")
        return real(fd)

    monkeypatch.setattr(os, "scandir", broken)
    assert [one.path for one in tree.walk(world.path("v")).unreadable] == [world.path("v/d")]


def test_names_that_are_no_text(world: World) -> None:
    top = os.fsencode(world.dir("v"))
    for name in (b".env.\xff", b"new\nline", b"\xfe", b".env.a\nb"):
        Path(os.fsdecode(top + b"/" + name)).write_text("")
    masks = finds(tree.walk(world.path("v"), DEFAULT_MASK), "mask")
    assert set(masks) == {".env.\udcff", ".env.a\nb"}


def test_a_source_that_vanished(world: World) -> None:
    assert tree.walk(world.path("gone")).entries == 0


def test_order_of_the_directory_does_not_matter(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.file(*(f"v/{n}/{m}/.env" for n in "abc" for m in "xyz"), "v/.git/config", "v/CLAUDE.md")
    world.socket("v/s")
    one = tree.walk(world.path("v"), (".env",))
    real: Callable[[Any], Any] = os.scandir

    class Backwards:
        def __init__(self, fd: Any) -> None:
            self.inner = real(fd)

        def __enter__(self) -> Any:
            return reversed(list(self.inner))

        def __exit__(self, *_: object) -> None:
            self.inner.close()

    monkeypatch.setattr(os, "scandir", Backwards)
    assert tree.walk(world.path("v"), (".env",)) == one


def test_again_asks_the_same_questions(world: World) -> None:
    world.file("v/w/CLAUDE.md", "v/w/.env.d/AGENTS.md", "v/x")
    profile = PROFILE._replace(mounts=(mount(world.path("v"), write=("w",)),))
    trees = world.facts(profile).trees
    world.file("v/w/new/.git/hooks/post-checkout", "v/outside/CLAUDE.md")
    before, after = tree.again(trees, world.path("v/w"))
    assert before.source == after.source == world.path("v/w")
    assert set(finds(before, "host-exec")) == {"CLAUDE.md"}
    assert set(finds(after, "host-exec")) == {"CLAUDE.md", "new/.git/hooks"}
    assert set(finds(after, "mask")) == {".env.d"}


def test_a_socket_that_is_made_by_the_agent(world: World) -> None:
    world.dir("v")
    trees = world.facts(PROFILE._replace(mounts=(mount(world.path("v"), "rw"),))).trees
    made = socket.socket(socket.AF_UNIX)
    here = os.open(world.path("v"), os.O_RDONLY)
    made.bind(f"/proc/self/fd/{here}/s")
    os.close(here)
    made.close()
    _, after = tree.again(trees, world.path("v"))
    assert set(finds(after, "socket")) == {"s"}
