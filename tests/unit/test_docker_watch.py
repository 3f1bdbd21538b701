"""Late masks of engine docker: what is seen, and what does not end a run."""

import os
import time
from pathlib import Path

import pytest

from bawn.effects import watch as module
from bawn.effects.watch import Watch
from bawn.errors import HostError
from bawn.plan.model import Guard

PATTERNS = (".env", ".env.*", "secret")


def guard(root: Path, patterns: tuple[str, ...] = PATTERNS) -> tuple[Guard, ...]:
    return (Guard(str(root), patterns, ""),)


def hit(watch: Watch) -> str:
    """inotify tells at once."""
    time.sleep(0.02)
    return watch.hit()


def test_nothing_is_guarded() -> None:
    with Watch((), frozenset()) as watch:
        assert watch.fileno() == -1
        assert watch.hit() == ""


@pytest.mark.parametrize("name", [".env", "deep/.env.local", "deep/er/secret"])
def test_a_name_that_appears(tmp_path: Path, name: str) -> None:
    (tmp_path / "deep/er").mkdir(parents=True)
    with Watch(guard(tmp_path), frozenset()) as watch:
        assert hit(watch) == ""
        (tmp_path / "deep/harmless").write_text("")
        assert hit(watch) == ""
        (tmp_path / name).write_text("x")
        assert hit(watch) == str(tmp_path / name)
        os.unlink(tmp_path / name)
        assert hit(watch) == str(tmp_path / name)  # it could have been read


def test_a_masked_file_that_is_replaced(tmp_path: Path) -> None:
    """An editor's save: a new file renamed over the masked one, which a cover does not follow."""
    (tmp_path / ".env").write_text("old")
    with Watch(guard(tmp_path), frozenset({str(tmp_path / ".env")})) as watch:
        (tmp_path / ".env").write_text("the same file, written in place")
        assert hit(watch) == ""
        (tmp_path / "new").write_text("new")
        os.rename(tmp_path / "new", tmp_path / ".env")
        assert hit(watch) == str(tmp_path / ".env")


@pytest.mark.parametrize("kind", ["link", "hardlink", "directory", "fifo"])
def test_names_of_every_kind(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_text("x")
    with Watch(guard(tmp_path), frozenset()) as watch:
        made = tmp_path / "secret"
        if kind == "link":
            made.symlink_to("file")
        elif kind == "hardlink":
            made.hardlink_to(tmp_path / "file")
        elif kind == "directory":
            made.mkdir()
        else:
            os.mkfifo(made)
        assert hit(watch) == str(tmp_path / "secret")


def test_what_stands_there_before_the_watch_and_is_not_in_the_plan(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/.env").write_text("made after the plan")
    with Watch(guard(tmp_path), frozenset()) as watch:
        assert watch.hit() == str(tmp_path / "d/.env")
    with Watch(guard(tmp_path), frozenset({str(tmp_path / "d/.env")})) as watch:
        assert watch.hit() == ""


def test_in_a_directory_that_is_made_and_filled_at_once(tmp_path: Path) -> None:
    with Watch(guard(tmp_path), frozenset()) as watch:
        (tmp_path / "a/b/c").mkdir(parents=True)
        (tmp_path / "a/b/c/.env").write_text("x")
        assert hit(watch) == str(tmp_path / "a/b/c/.env")


def test_a_directory_that_moves_in_with_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "outside/x").mkdir(parents=True)
    (tmp_path / "outside/x/.env").write_text("x")
    (tmp_path / "root").mkdir()
    with Watch(guard(tmp_path / "root"), frozenset()) as watch:
        os.rename(tmp_path / "outside", tmp_path / "root/in")
        assert hit(watch) == str(tmp_path / "root/in/x/.env")


def test_links_are_not_followed_and_masked_directories_not_entered(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "root/secret").mkdir(parents=True)
    (tmp_path / "root/way").symlink_to(tmp_path / "outside")
    known = frozenset({str(tmp_path / "root/secret")})
    with Watch(guard(tmp_path / "root"), known) as watch:
        (tmp_path / "outside/.env").write_text("x")
        (tmp_path / "root/secret/.env").write_text("x")
        assert hit(watch) == ""


def test_two_guards_on_one_tree(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    guards = guard(tmp_path, ("a",)) + guard(tmp_path / "in", ("b",))
    with Watch(guards, frozenset()) as watch:
        (tmp_path / "b").write_text("")
        assert hit(watch) == ""
        (tmp_path / "in/b").write_text("")
        assert hit(watch) == str(tmp_path / "in/b")


def test_a_tree_that_comes_and_goes(tmp_path: Path) -> None:
    with Watch(guard(tmp_path), frozenset()) as watch:
        for number in range(200):
            (tmp_path / f"d{number}/e").mkdir(parents=True)
            os.rmdir(tmp_path / f"d{number}/e")
            os.rmdir(tmp_path / f"d{number}")
        assert hit(watch) == ""
        (tmp_path / "d/e").mkdir(parents=True)
        assert hit(watch) == ""
        (tmp_path / "d/e/.env").write_text("x")
        assert hit(watch) == str(tmp_path / "d/e/.env")


def test_after_an_overflow_everything_is_looked_at_again(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with Watch(guard(tmp_path), frozenset()) as watch:
        limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
        if limit > 1 << 17:
            pytest.skip("the queue is too long to fill")
        for number in range(limit // 2 + 10):  # two names in turn, or equal events are merged
            for name in (f"x{number % 50}", f"y{number % 50}"):
                fd = os.open(tmp_path / name, os.O_CREAT | os.O_EXCL)
                os.close(fd)
                os.unlink(tmp_path / name)
        (tmp_path / "d/.env").write_text("its event was dropped")
        assert hit(watch) == str(tmp_path / "d/.env")


def test_a_directory_that_cannot_be_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_EVENTS", 0)  # EINVAL
    with pytest.raises(HostError, match="cannot watch"):
        Watch(guard(tmp_path), frozenset()).__enter__()


def test_closed_early(tmp_path: Path) -> None:
    with Watch(guard(tmp_path), frozenset()) as watch:
        watch.close()
        assert watch.fileno() == -1
        assert watch.hit() == ""
