"""The command's stdio, exit status, signals, terminal and time-out are its own."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.system.conftest import BAWN, Person, processes

pytestmark = pytest.mark.system


def test_output_is_untouched(person: Person, work: Path) -> None:
    done = person.bawn("run", "--", "sh", "-c", "printf 'out\\0put'; printf err >&2; exit 7", cwd=work)
    assert done.stdout == "out\0put"
    assert done.stderr.endswith("err")
    assert done.returncode == 7


def test_quiet_says_nothing(person: Person, work: Path) -> None:
    done = person.bawn("run", "-q", "true", cwd=work)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["sh", "-c", "exit 42"], 42),
        (["sh", "-c", "exit 128"], 128),  # git's, too: no failure of the engine
        (["no-such-program"], 127),
        (["/etc/passwd"], 126),
        (["sh", "-c", "kill -9 $$"], 137),
        (["sh", "-c", "kill -TERM $$"], 143),
    ],
)
def test_exit_codes(person: Person, work: Path, command: list[str], code: int) -> None:
    assert person.bawn("run", "-q", "--", *command, cwd=work).returncode == code


def test_stdin_reaches_the_command(person: Person, work: Path) -> None:
    text = "line\n" * 50_000
    assert person.bawn("run", "-q", "cat", cwd=work, input=text).stdout == text


def test_regular_files_as_stdio_keep_their_position(person: Person, work: Path) -> None:
    (work / "in").write_text("first\nsecond\n")
    script = f"{{ echo before; {BAWN} run -q -- sh -c 'echo in; echo err >&2'; echo after; }} >o 2>&1"
    script += f"; {{ read x; {BAWN} run -q cat; }} <in >p"
    subprocess.run(
        ["sh", "-c", script], cwd=work, env=person.environment(), user=person.uid, group=person.gid,
        extra_groups=[], check=True,
    )  # fmt: skip
    assert sorted((work / "o").read_text().split()) == ["after", "before", "err", "in"]
    assert (work / "o").read_text().startswith("before\n")
    assert (work / "o").read_text().endswith("after\n")
    assert (work / "p").read_text() == "second\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_command(person: Person, work: Path, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got; exit 5' {name}; echo ready; while :; do sleep 0.1; done"
    child = person.start("run", "-q", "--", "sh", "-c", script, cwd=work)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(number)
    out, _ = child.communicate(timeout=20)
    assert (out, child.returncode) == ("got\n", 5)


def test_closed_stdio(person: Person, work: Path) -> None:
    """What is closed becomes /dev/null, never the next file that bawn opens."""
    for closing, code in ((">&-", 3), ("2>&-", 3), ("<&-", 3), ("<&- >&- 2>&-", 3)):
        done = subprocess.run(
            ["sh", "-c", f"{BAWN} run -q -- sh -c 'cat; echo out; echo err >&2; exit 3' {closing}"],
            cwd=work, env=person.environment(), user=person.uid, group=person.gid, extra_groups=[],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == code, (closing, done)
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("value", ["0s", "-1s", "soon", "1.5"])
def test_a_time_out_that_is_none(person: Person, work: Path, value: str) -> None:
    done = person.bawn("run", f"--timeout={value}", "true", cwd=work)
    assert done.returncode == 2
    assert "--timeout" in done.stderr


def test_one_file_for_both_outputs_keeps_their_order(person: Person, work: Path) -> None:
    os.chown(person.make(work / "log", ""), person.uid, person.gid)
    say = "for n in $(seq 200); do echo out $n; echo err $n >&2; done"
    subprocess.run(["sh", "-c", f"{BAWN} run -q -- sh -c '{say}' >log 2>&1"], cwd=work,
                   env=person.environment(), user=person.uid, group=person.gid, extra_groups=[],
                   check=True)  # fmt: skip
    expected = [f"{stream} {n}" for n in range(1, 201) for stream in ("out", "err")]
    assert (work / "log").read_text().splitlines() == expected


def test_what_is_behind_stdout_cannot_be_truncated(person: Person, work: Path) -> None:
    """A regular file stays with bawn; the box gets a pipe."""
    os.chown(person.make(work / "log", "earlier\n"), person.uid, person.gid)
    script = f"{BAWN} run -q -- python3 -c 'import os; os.write(1, b\"x\"); os.ftruncate(1, 0)' >>log 2>&1"
    subprocess.run(["sh", "-c", script], cwd=work, env=person.environment(), user=person.uid,
                   group=person.gid, extra_groups=[], check=False)  # fmt: skip
    assert (work / "log").read_text().startswith("earlier\nx")


def test_the_command_has_no_descriptor_of_bawns(person: Person, work: Path) -> None:
    done = person.sh("ls /proc/self/fd", work)
    assert done.stdout.split() == ["0", "1", "2", "3"]  # 3 is ls's own


def test_a_runsc_that_an_agent_could_write_is_not_used(person: Person, work: Path) -> None:
    """An activated virtual environment puts a directory of the agent's first on PATH."""
    fake = person.make(work / "bin/runsc", '#!/bin/sh\ntouch $0.ran\nexec /usr/bin/runsc "$@"\n')
    fake.chmod(0o755)
    done = person.bawn("run", "-q", "echo", "ok", cwd=work, PATH=f"{work}/bin:/usr/bin:/bin")
    assert done.stdout == "ok\n"
    assert not (work / "bin/runsc.ran").exists()


def test_time_out_ends_the_whole_tree(person: Person, work: Path) -> None:
    mark = f"31{os.getpid()}.5"
    script = (
        f"trap '' TERM INT HUP; sleep {mark} & (setsid sleep {mark} &) ; "
        f"nohup sleep {mark} >/dev/null & sleep {mark}"
    )
    start = time.monotonic()
    done = person.sh(script, work, "--timeout", "2s")
    assert done.returncode == 124
    assert time.monotonic() - start < 4 + 1  # the start of the box, 2 s, and 2 s to end it
    assert not processes(f"sleep {mark}")


def test_time_out_of_the_policy_cannot_be_lengthened(person: Person, work: Path) -> None:
    (work / "bawn.toml").write_text('version = 1\n[profile.default]\nlimits = { time = "1s" }\n')
    assert person.bawn("trust", "--yes", cwd=work).returncode == 0
    assert person.sh("sleep 30", work, "--timeout", "1h").returncode == 124


class Terminal:
    """bawn at a pseudo-terminal."""

    def __init__(self, person: Person, cwd: Path, *words: str, size: tuple[int, int]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.setgroups([])
            os.setgid(person.gid)
            os.setuid(person.uid)
            os.execve(BAWN, [BAWN, *words], person.environment(TERM="xterm"))
        self.resize(*size)
        self.seen = ""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, text: str, seconds: float = 20) -> None:
        deadline = time.monotonic() + seconds
        os.set_blocking(self.fd, False)
        while text not in self.seen:
            assert time.monotonic() < deadline, f"never saw {text!r} in {self.seen!r}"
            try:
                self.seen += os.read(self.fd, 4096).decode(errors="replace")
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:
                break
        assert text in self.seen, self.seen
        self.seen = self.seen.split(text, 1)[1]

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def end(self) -> int:
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def test_terminal(person: Person, work: Path) -> None:
    """A tty, its size, a change of the size, an interrupt for the job alone, and the exit status."""
    term = Terminal(person, work, "run", "-q", "--", "bash", "--norc", "-i", size=(33, 101))
    term.type("PS1='ok> '; test -t 0 && echo a''tty; stty size\n")
    term.until("atty")
    term.until("33 101")
    term.resize(40, 120)
    term.type("stty size\n")
    term.until("40 120")
    term.type("sleep 60\n")
    time.sleep(1)
    term.type("\x03")
    term.type("echo status=$?\n")
    term.until("status=130")
    term.type("echo st''ill; exit 9\n")
    term.until("still")
    assert term.end() == 9


def test_terminal_is_as_it_was_after_a_kill(person: Person, work: Path) -> None:
    term = Terminal(person, work, "run", "-q", "--timeout", "2s", "--", "sh", "-c",
                    "stty raw -echo; echo re''ady; sleep 60", size=(24, 80))  # fmt: skip
    before = termios.tcgetattr(term.fd)[3] & (termios.ECHO | termios.ICANON)
    term.until("ready")
    _, status = os.waitpid(term.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 124
    assert termios.tcgetattr(term.fd)[3] & (termios.ECHO | termios.ICANON) == before
    os.close(term.fd)


def test_no_runsc_no_run(person: Person, work: Path) -> None:
    """Fail closed: refused with the way to install it, never runc, never bare."""
    script = (
        "for f in /usr/bin/runsc /usr/local/bin/runsc; do test ! -e $f || mount --bind /dev/null $f; done; "
        f"exec setpriv --reuid {person.uid} --regid {person.gid} --clear-groups {BAWN} run -- touch made"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], cwd=work, env=person.environment(),
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 125, done.stderr
    assert "runsc (gVisor) is not installed" in done.stderr
    assert "apt-get install" in done.stderr
    assert not (work / "made").exists()
