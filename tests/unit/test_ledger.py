"""The ledger, case by case: class R of the corpus of public defects, and the lines near it."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bawn.cli.history import rows
from bawn.cli.main import main
from bawn.effects import journal, ledger, undo
from bawn.effects.snapshot import look
from bawn.errors import HostError
from bawn.facts import dirs
from bawn.plan.change import Change, FileStep
from tests.unit.ledger_world import World

ACL = bytes.fromhex(
    "0200000001000600ffffffff02000400e803000004000400ffffffff10000400ffffffff20000000ffffffff"
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def cli(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """The verbs use this world's state."""
    monkeypatch.setattr(dirs, "observe", lambda: dirs.Dirs("/c", world.state, "/r"))
    return world


def one(path: Path, new: bytes | None, **named: object) -> Change:
    old = path.read_bytes() if path.exists() else None
    return Change("test", "one file", (FileStep(str(path), old, new, "set it", **named),))  # type: ignore[arg-type]


def test_apply_and_rollback(world: World) -> None:
    entry = world.apply()
    assert entry.state == journal.APPLIED
    assert world.applied()
    done = ledger.rollback(world.state, entry.number)
    assert done is not None and done.state == journal.RESTORED
    assert world.picture() == world.old
    assert list(Path(world.state).rglob("before-*")) == []  # they may hold secrets


def test_r03_a_limit_on_file_size_leaves_the_old_bytes(world: World) -> None:
    """In a child: the journal fits, the new content does not."""
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        try:
            ledger.apply(one(world.real, b"x" * 9000), world.state)
        except HostError as error:
            os._exit(7 if "restored and verified" in error.message else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert world.picture() == world.old
    assert not list(world.home.rglob("*.new"))


def test_r04_mode_owner_acl_and_attributes_are_kept_under_any_umask(world: World) -> None:
    os.setxattr(world.real, "user.note", b"mine")
    os.setxattr(world.real, "system.posix_acl_access", ACL)
    if os.geteuid() == 0:
        os.chown(world.real, 1234, 1235)
    before, _ = look(str(world.real))
    umask = os.umask(0)
    try:
        entry = ledger.apply(one(world.real, b"new"), world.state)
        after, data = look(str(world.real))
        assert data == b"new"
        assert after._replace(sha256="") == before._replace(sha256="")
        os.removexattr(world.real, "user.note")
        with pytest.raises(HostError, match="ACL or extended attributes changed"):
            ledger.rollback(world.state, entry.number)
        ledger.rollback(world.state, entry.number, force=True)
    finally:
        os.umask(umask)
    assert look(str(world.real))[0] == before


def test_r04_the_temporary_file_is_never_wider(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    write = os.write

    def spy(fd: int, data: bytes) -> int:
        seen.append(os.fstat(fd).st_mode & 0o777)
        return write(fd, data)

    umask = os.umask(0)
    monkeypatch.setattr(os, "write", spy)
    try:
        ledger.apply(one(world.real, b"new"), world.state)
    finally:
        os.umask(umask)
    assert set(seen) == {0o600}


def test_r04_a_link_stays_a_link_and_its_target_decides(world: World) -> None:
    entry = ledger.apply(one(world.config, b"new"), world.state)
    assert os.readlink(world.config) == "dotfiles/config.yaml"
    other = world.home / "other.yaml"
    other.write_bytes(b"new")
    world.config.unlink()
    world.config.symlink_to("other.yaml")
    with pytest.raises(HostError, match="leads to .*other.yaml"):
        ledger.rollback(world.state, entry.number)
    assert other.read_bytes() == b"new"


def test_r04_what_a_rename_would_cut_is_refused(world: World) -> None:
    os.link(world.real, world.home / "second")
    with pytest.raises(HostError, match="2 names"):
        world.apply()
    fifo = world.home / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(HostError, match="not a regular file"):
        ledger.apply(Change("t", "t", (FileStep(str(fifo), None, b"", ""),)), world.state)


@pytest.mark.parametrize("harm", ["removed", "damaged", "unreadable"])
def test_r07_a_copy_that_is_not_what_was_kept_touches_nothing(
    cli: World, harm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = cli.apply()
    live = cli.picture()
    copy = Path(journal.copy_of(cli.state, entry.number, 3))
    kept = copy.read_bytes()
    copy.unlink()
    if harm != "removed":
        copy.write_bytes(b"not it") if harm == "damaged" else copy.mkdir()
    assert main(["rollback"]) == 1
    said = capsys.readouterr()
    assert "ROLLBACK FAILED" in said.err
    assert "restored" not in said.out
    assert cli.picture() == live
    copy.rmdir() if harm == "unreadable" else copy.unlink(missing_ok=True)
    copy.write_bytes(kept)
    assert main(["rollback"]) == 0
    assert cli.picture() == cli.old


@pytest.mark.parametrize("step", [1, 2, 3])
def test_r08_a_step_that_cannot_be_done_takes_the_others_back(world: World, step: int) -> None:
    blocks = [world.real.parent, world.home / "new", world.gone.parent]
    steps = list(world.change().steps)
    bad = FileStep(str(blocks[step - 1] / "file/below"), None, b"", "impossible")
    (blocks[step - 1] / "x").parent.mkdir(exist_ok=True)
    (blocks[step - 1] / "file").write_bytes(b"")
    world.old = world.picture()
    steps.insert(step, bad)
    with pytest.raises(HostError, match="restored and verified|cannot read"):
        ledger.apply(Change("t", "t", tuple(steps)), world.state)
    assert world.picture() == world.old


def test_r08_the_live_check_decides(world: World) -> None:
    told: list[bool] = []

    def verify() -> None:
        assert world.applied()
        raise HostError("Hermes reads something else", "look at it")

    with pytest.raises(HostError, match="restored and verified: Hermes reads something else"):
        world.apply(verify=verify, settle=lambda: told.append(world.picture() == world.old))
    assert told == [True]
    (entry,) = journal.entries(world.state)
    assert (entry.state, entry.told) == (journal.RESTORED, "Hermes reads something else")


def test_r10_programs_that_still_hold_the_other_text_are_named(
    cli: World, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"reader-{os.getpid()}"
    child = subprocess.Popen([name, "60"], executable="/bin/sleep")
    try:
        ledger.apply(cli.change()._replace(readers=(name,)), cli.state)
        assert main(["rollback"]) == 1
        assert f"still running with what was there before: {child.pid} {name}" in capsys.readouterr().out
        assert cli.picture() == cli.old
    finally:
        child.kill()
        child.wait()


def test_r10_a_rollback_whose_live_check_fails_is_not_done(world: World) -> None:
    entry = world.apply()

    def settle() -> None:
        raise HostError("docker does not start")

    with pytest.raises(HostError, match="ROLLBACK FAILED: docker does not start"):
        ledger.rollback(world.state, entry.number, settle=settle)
    assert journal.load(world.state, entry.number).state == journal.FAILED
    assert ledger.rollback(world.state, entry.number) is not None
    assert world.picture() == world.old


def test_r12_two_changes_in_one_second_keep_two_copies(world: World) -> None:
    ledger.apply(one(world.real, b"second"), world.state)
    ledger.apply(one(world.real, b"third"), world.state)
    copies = [Path(journal.copy_of(world.state, n, 1)).read_bytes() for n in (1, 2)]
    assert copies == [b"a: 1\n# kept\n", b"second"]
    with pytest.raises(HostError, match="has changed since"):
        ledger.rollback(world.state, 1)  # the later one first
    assert ledger.rollback(world.state, 2) and ledger.rollback(world.state, 1)
    assert world.picture() == world.old


def test_r12_a_second_rollback_does_nothing_and_says_why(
    cli: World, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.apply()
    assert main(["rollback", "1"]) == 0
    cli.real.write_bytes(b"later work")
    assert main(["rollback", "1"]) == 0
    assert "nothing to undo: change 1 (the test's change) was rolled back before" in capsys.readouterr().out
    assert main(["rollback"]) == 0
    assert "no change is in force" in capsys.readouterr().out
    assert cli.real.read_bytes() == b"later work"


def test_a_file_that_changed_since_is_named_and_force_keeps_it(
    cli: World, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.apply()
    cli.real.write_bytes(b"work of a person")
    cli.real.chmod(0o644)
    assert main(["diff"]) == 1
    assert main(["rollback"]) == 1
    said = capsys.readouterr()
    assert "its content changed, its mode is 0644, not 0600" in said.err
    assert "rollback 1 --force" in said.err
    assert cli.real.read_bytes() == b"work of a person"
    assert main(["rollback", "--force"]) == 0
    assert cli.picture() == cli.old
    (kept,) = Path(cli.state).rglob("forced-*")
    assert kept.read_bytes() == b"work of a person"


def test_a_rollback_is_read_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that says it was done, and was not."""
    entry = world.apply()
    monkeypatch.setattr(undo, "put", lambda *_: None)
    with pytest.raises(HostError, match=r"ROLLBACK FAILED: .*gone.env is not as it was"):
        ledger.rollback(world.state, entry.number)
    monkeypatch.undo()
    world.end()


def test_one_step_of_a_change(cli: World, capsys: pytest.CaptureFixture[str]) -> None:
    cli.apply()
    assert main(["rollback", "1.3"]) == 0
    assert cli.gone.exists() and cli.made.exists()
    main(["history"])
    assert "partly rolled back" in capsys.readouterr().out
    assert main(["rollback", "1.4"]) == 1
    assert main(["rollback", "x"]) == 2
    assert main(["rollback", "9"]) == 1
    assert main(["rollback", "1"]) == 0
    assert cli.picture() == cli.old


def test_history_and_diff(cli: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history"]) == 0
    assert main(["diff"]) == 0
    cli.apply()
    capsys.readouterr()
    assert main(["history"]) == 0
    out = capsys.readouterr().out
    assert "applied and verified: the test's change" in out
    assert f"1.2  {cli.made}: write it" in out
    assert main(["history", "--json"]) == 0
    assert '"outcome": "applied and verified"' in capsys.readouterr().out
    assert main(["diff", "1.1"]) == 0
    assert "-a: 1\n+a: 2\n # kept\n" in capsys.readouterr().out
    main(["rollback"])
    assert main(["diff", "1"]) == 0
    assert "was rolled back" in capsys.readouterr().out


def test_a_killed_bawn_is_seen_and_ended_by_the_next(cli: World, capsys: pytest.CaptureFixture[str]) -> None:
    pid = os.fork()
    if not pid:
        cli.apply(verify=lambda: os.kill(os.getpid(), signal.SIGKILL))
    os.waitpid(pid, 0)
    assert cli.applied()
    assert main(["history"]) == 1
    out = capsys.readouterr().out
    assert "interrupted: the test's change" in out
    assert "fix: bawn rollback 1" in out
    with pytest.raises(HostError, match="was interrupted"):
        ledger.apply(one(cli.real, b"more"), cli.state)
    assert main(["rollback"]) == 0
    assert cli.picture() == cli.old


def test_two_at_once_are_one_after_the_other(world: World) -> None:
    """Each adds a line; none is lost, and none is refused."""
    script = (
        "import sys; from bawn.effects import ledger; from bawn.plan.change import Change, FileStep\n"
        "path, state, word = sys.argv[1:]\n"
        "for _ in range(200):\n"
        "    old = open(path, 'rb').read()\n"
        "    step = FileStep(path, old, old + word.encode(), 'add')\n"
        "    try: ledger.apply(Change('t', 't', (step,)), state)\n"
        "    except ledger.HostError as error:\n"
        "        assert 'changed while' in error.message, error.message\n"
        "    else: break\n"
        "else: sys.exit(1)\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", script, str(world.real), world.state, word])
        for word in ("x", "y", "z")
    ]
    assert [child.wait(30) for child in children] == [0, 0, 0]
    assert sorted(world.real.read_bytes()[-3:]) == [120, 121, 122]
    for number in (3, 2, 1):
        ledger.rollback(world.state, number)
    assert world.picture() == world.old


def test_the_wait_for_another_bawn_has_an_end(cli: World, capsys: pytest.CaptureFixture[str]) -> None:
    entered, leave = threading.Event(), threading.Event()

    def verify() -> None:
        entered.set()
        leave.wait(10)

    thread = threading.Thread(target=lambda: cli.apply(verify=verify))
    thread.start()
    try:
        assert entered.wait(10)
        main(["history"])
        assert "in progress" in capsys.readouterr().out
        start = time.monotonic()
        with pytest.raises(HostError, match="another bawn"):
            ledger.rollback(cli.state, 1, wait=0.2)
        assert time.monotonic() - start < 5
    finally:
        leave.set()
        thread.join()
    assert cli.applied()


def test_a_file_that_changed_while_it_was_planned(world: World) -> None:
    change = world.change()
    world.gone.write_bytes(b"SECRET=2\n")
    old = world.picture()
    with pytest.raises(HostError, match="changed while this was planned"):
        ledger.apply(change, world.state)
    assert world.picture() == old


def test_directories_that_were_made_go_unless_somebody_uses_them(world: World) -> None:
    entry = world.apply()
    (world.home / "new/theirs").write_text("")
    ledger.rollback(world.state, entry.number)
    assert (world.home / "new/theirs").exists()
    assert not (world.home / "new/er").exists()


def test_the_state_is_private(world: World) -> None:
    world.apply()
    for path in (Path(world.state) / "ledger").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_name_that_would_rule_a_terminal(world: World) -> None:
    entry = world.apply()._replace(title="\x1b[2Jclear\n")
    assert all(line.isprintable() for line in rows(entry, False))
