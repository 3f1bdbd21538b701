"""`facts.paths`: one expansion, one resolution, and a reason for everything that stops it."""

import os
import subprocess
from pathlib import Path

import pytest

from bawn.facts.mountinfo import MountTable, parse
from bawn.facts.paths import Resolver, resolve
from bawn.policy.pathtext import ancestors, within


@pytest.fixture
def home(tmp_path: Path) -> str:
    (tmp_path / "home").mkdir()
    return str(tmp_path / "home")


def test_one_expansion_of_tilde(home: str) -> None:
    os.makedirs(f"{home}/v/~/x")
    assert resolve("~/v", home).path == f"{home}/v"
    assert resolve("~", home).path == home
    assert resolve("~/v/~/x", home).path == f"{home}/v/~/x"


@pytest.mark.parametrize(
    "text",
    ["vault", "./vault", "$HOME/v", "${HOME}/v", "/a/$X/b", "~root/x", "", "a\0b", "/\udc80"],
)
def test_not_a_source(text: str, home: str) -> None:
    """M18: a relative source is a volume's name to docker; an unset variable is nothing."""
    fact = resolve(text, home)
    assert fact.kind == "missing"
    assert fact.error
    assert fact.path == ""


def test_relative_only_below_a_base(home: str) -> None:
    os.makedirs(f"{home}/w")
    assert resolve("w", home, home).path == f"{home}/w"
    assert resolve(".", home, home).path == home
    assert resolve("./w/../w/.", home, home).path == f"{home}/w"


def test_a_dollar_that_is_no_variable(home: str) -> None:
    os.makedirs(f"{home}/a$")
    assert resolve(f"{home}/a$", home).path == f"{home}/a$"


def test_an_unknown_home_is_no_root(tmp_path: Path) -> None:
    assert resolve("~/x", "").error


def test_links_are_followed_once_and_named(tmp_path: Path, home: str) -> None:
    real = tmp_path / "disk" / "real"
    real.mkdir(parents=True)
    (tmp_path / "one").symlink_to("disk/two")
    (tmp_path / "disk" / "two").symlink_to(real)
    fact = resolve(f"{tmp_path}/one", home)
    assert fact.path == str(real)
    assert fact.links == (f"{tmp_path}/one -> disk/two", f"{tmp_path}/disk/two -> {real}")
    assert (fact.dev, fact.ino) == (real.stat().st_dev, real.stat().st_ino)


def test_dotdot_after_a_link_is_the_targets_parent(tmp_path: Path, home: str) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "l").symlink_to("../a/b")
    assert resolve(f"{tmp_path}/c/l/..", home).path == f"{tmp_path}/a"


def test_a_circle_of_links_ends(tmp_path: Path, home: str) -> None:
    (tmp_path / "x").symlink_to("y")
    (tmp_path / "y").symlink_to("x")
    assert "links" in resolve(f"{tmp_path}/x", home).error


def test_missing_says_where_it_would_be(tmp_path: Path, home: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "l").symlink_to("real")
    fact = resolve(f"{tmp_path}/l/new/deep", home)
    assert (fact.kind, fact.path, fact.error) == ("missing", "", "")
    assert fact.would_be == f"{tmp_path}/real/new/deep"
    assert fact.chain[-1].path == f"{tmp_path}/real"
    assert resolve(f"{tmp_path}/l/new/../x", home).error


def test_a_file_in_the_middle_is_named(tmp_path: Path, home: str) -> None:
    (tmp_path / "f").write_text("")
    fact = resolve(f"{tmp_path}/f/x", home)
    assert fact.error.startswith(f"{tmp_path}/f (-rw")
    assert "not a directory" in fact.error


def test_the_directory_that_bars_is_named_with_its_mode(
    tmp_path: Path, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G13, as any user: the kernel's answer is put in."""
    (tmp_path / "shut" / "x").mkdir(parents=True)
    (tmp_path / "shut").chmod(0o700)
    real = os.lstat

    def barred(path: str) -> os.stat_result:
        if path == f"{tmp_path}/shut/x":
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "lstat", barred)
    error = resolve(f"{tmp_path}/shut/x", home).error
    assert error.startswith(f"{tmp_path}/shut (drwx------, owner {os.getuid()}:{os.getgid()})")
    assert "permission denied" in error


def test_kinds(tmp_path: Path, home: str) -> None:
    (tmp_path / "f").write_text("")
    os.mkfifo(tmp_path / "p")
    assert resolve(f"{tmp_path}/f", home).kind == "file"
    assert resolve(f"{tmp_path}/p", home).kind == "fifo"
    assert resolve("/dev/null", home).kind == "device"
    assert resolve(str(tmp_path), home).kind == "dir"
    assert resolve("/", home).path == "/"


def test_each_directory_is_looked_at_once(tmp_path: Path, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/b/c", "a/b/d"):
        (tmp_path / name).mkdir(parents=True)
    asked: list[str] = []
    real = os.lstat

    def counted(path: str) -> os.stat_result:
        asked.append(path)
        return real(path)

    monkeypatch.setattr(os, "lstat", counted)
    resolver = Resolver(home)
    resolver.resolve(f"{tmp_path}/a/b/c")
    resolver.resolve(f"{tmp_path}/a/b/d")
    assert len(asked) == len(set(asked))


def test_a_path_of_a_thousand_steps(tmp_path: Path, home: str) -> None:
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=at)
        at, above = os.open("d", os.O_RDONLY, dir_fd=at), at
        os.close(above)
    os.close(at)
    fact = resolve(str(tmp_path) + "/d" * 1500, home)
    subprocess.run(["rm", "-rf", f"{tmp_path}/d"], check=True)
    assert (fact.kind, len(fact.chain)) == ("dir", 1500 + len(tmp_path.parts) - 1)
    assert fact.origin.endswith("/d" * 1500)


def test_origin_sees_through_bind_mounts(tmp_path: Path, home: str) -> None:
    os.makedirs(f"{home}/.ssh")
    (tmp_path / "other").mkdir()
    text = f"1 0 8:1 / / rw - ext4 d rw\n2 1 8:1 {home}/.ssh {tmp_path}/other rw - ext4 d rw\n"
    resolver = Resolver(home, MountTable(parse(text)))
    one, two = resolver.resolve("~/.ssh"), resolver.resolve(f"{tmp_path}/other")
    assert one.origin == two.origin == f"8:1{home}/.ssh"
    assert resolver.resolve(f"{tmp_path}/other/new").origin == f"8:1{home}/.ssh/new"


def test_containment_is_by_whole_components() -> None:
    assert within("/vault/a", "/vault")
    assert within("/vault", "/vault")
    assert within("/x", "/")
    assert not within("/vault-evil", "/vault")
    assert not within("/vaul", "/vault")
    assert ancestors("/a/b") == ["/a/b", "/a", "/"]
    assert ancestors("/") == ["/"]
