"""bawn killed at any point: the kernel ends the box, and `bawn sweep` (or the next start) the rest."""

import fcntl
import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.system.conftest import Person, processes

pytestmark = pytest.mark.system


def leftovers(person: Person) -> list[str]:
    """Files, groups and mounts of dead runs (other runs of this machine may be alive meanwhile)."""
    runtime = Path("/run/bawn" if person.uid == 0 else person.home / ".cache/bawn")
    runs = list((runtime / "runs").glob("*")) if (runtime / "runs").exists() else []
    alive = {path.name for path in runs if locked(path / "lock")}
    found = [str(path) for path in runs if path.name not in alive]
    if person.uid == 0:
        for controller in ("memory", "pids", "cpu", ""):
            groups = Path("/sys/fs/cgroup", controller, "bawn").glob("1*")
            found += [
                str(path) for path in groups
                if path.name not in alive and not (path / "cgroup.procs").read_text()
            ]  # fmt: skip
    mounts = Path("/proc/self/mountinfo").read_text()
    return found + [line for line in mounts.splitlines() if str(runtime) in line]


def locked(path: Path) -> bool:
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def gone(word: str) -> bool:
    """No process of the run is left within two seconds. A namespace lives as its processes do."""
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        if not processes(word):
            return True
        time.sleep(0.02)
    return False


# Seconds after the start: before runsc, while it starts, while the command runs.
@pytest.mark.parametrize("after", [0.02, 0.05, 0.08, 0.11, 0.15, 0.2, 0.3, 0.6])
def test_killed(person: Person, work: Path, after: float) -> None:
    child = person.start("run", "-q", "--", "sleep", "300", cwd=work,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    time.sleep(after)
    child.send_signal(signal.SIGKILL)
    child.wait()
    runs = Path("/run/bawn" if person.uid == 0 else person.home / ".cache/bawn") / "runs"
    mine = [p.name for p in runs.glob("*") if not locked(p / "lock")] if runs.exists() else []
    assert all(gone(run) for run in mine)
    swept = person.bawn("sweep", cwd=work)
    assert swept.returncode == 0, swept.stdout
    assert leftovers(person) == []


def test_the_next_start_sweeps(person: Person, work: Path) -> None:
    child = person.start("run", "-q", "--", "sleep", "300", cwd=work)
    time.sleep(0.8)
    child.kill()
    child.wait()
    assert person.bawn("run", "-q", "true", cwd=work).returncode == 0
    assert leftovers(person) == []


def test_a_live_run_is_left_alone(person: Person, work: Path) -> None:
    child = person.start("run", "-q", "--", "sh", "-c", "echo up; sleep 3; echo alive", cwd=work)
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"
    assert person.bawn("sweep", cwd=work).stdout == ""
    assert person.bawn("run", "-q", "true", cwd=work).returncode == 0
    assert child.communicate(timeout=20)[0] == "alive\n"


def test_a_plain_end_leaves_nothing(person: Person, work: Path) -> None:
    for command in (["true"], ["false"], ["no-such-program"]):
        person.bawn("run", "-q", "--", *command, cwd=work)
    assert leftovers(person) == []


def test_a_start_that_fails_leaves_nothing(person: Person, work: Path) -> None:
    """The directory vanishes between plan and start: an image that is not one."""
    done = person.bawn("run", "--image", "no-such-image", "true", cwd=work)
    assert done.returncode == 125
    assert "BWN709" in done.stderr
    assert leftovers(person) == []


def test_the_run_log(person: Person, work: Path) -> None:
    done = person.sh("exit 3", work, "--json")
    run = json.loads(done.stderr.splitlines()[-1])["run"]
    lines = person.bawn("runs", "--json", "-n", "50", cwd=work).stdout.splitlines()
    started, ended = (e for e in map(json.loads, lines) if e["run"] == run)
    plan = json.loads(person.bawn("plan", "--json", "--", "sh", "-c", "exit 3", cwd=work).stdout)
    assert started["plan"] == plan["id"]
    assert (ended["exit"], ended["reason"]) == (3, "exit")
    assert ended["duration_ms"] > 0
    assert run in person.bawn("runs", cwd=work).stdout
