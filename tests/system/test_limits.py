"""Each limit by measurement, and what the run log says of it."""

import time
from pathlib import Path

import pytest

from tests.system.conftest import Person, need, policy, record, sandbox_of, starve

pytestmark = pytest.mark.system

EAT = "b = []\nfor _ in range({mib}): b.append(b'x' * (1 << 20))\nprint('all of it')"


def test_memory_twice_the_cap_dies_and_is_reported(person: Person, work: Path) -> None:
    policy(work, '[profile.default]\nlimits = { memory = "200MiB" }\n', person)
    done = person.bawn("run", "--json", "--", "python3", "-c", EAT.format(mib=400), cwd=work)
    assert done.returncode == 137, done
    assert "all of it" not in done.stdout
    assert "memory limit" in done.stderr
    ended = record(done.stderr)
    assert ended["reason"] == "memory"
    assert ended["limits_hit"] == ["memory"]


def test_a_kill_that_the_sentry_outlives_ends_the_run(users: dict[str, Person]) -> None:
    """Seen once: the kernel had killed the box's stub, the Sentry stayed, and the run with it."""
    root = users["root"]
    work = root.make(root.home / "outlives")
    policy(work, '[profile.default]\nlimits = { memory = "200MiB" }\n', root)
    child = root.start("run", "--json", "--", "sh", "-c", "echo begun; sleep 60", cwd=work)
    assert child.stdout is not None and child.stdout.readline() == "begun\n"
    starve(sandbox_of(child.pid))
    start = time.monotonic()
    _, err = child.communicate(timeout=20)
    assert time.monotonic() - start < 4
    assert child.returncode == 137, err
    assert record(err)["reason"] == "memory"


def test_memory_below_the_cap_lives(person: Person, work: Path) -> None:
    policy(work, '[profile.default]\nlimits = { memory = "300MiB" }\n', person)
    done = person.bawn("run", "--json", "--", "python3", "-c", EAT.format(mib=150), cwd=work)
    assert (done.returncode, done.stdout) == (0, "all of it\n"), done.stderr
    ended = record(done.stderr)
    assert ended["reason"] == "exit"
    if person.uid == 0:
        assert 150 << 20 < int(str(ended["peak_memory"])) <= 300 << 20


def test_private_file_systems_count_as_memory(person: Person, work: Path) -> None:
    policy(work, '[profile.default]\nlimits = { memory = "200MiB", home = "1GiB" }\n', person)
    done = person.sh("head -c 600m /dev/zero > ~/big; echo done; sleep 2", work)
    assert done.returncode == 137, done


def test_a_fork_bomb_stops_and_node_starts(person: Person, work: Path) -> None:
    """512 processes and threads; the bomb itself is bounded at 2,000."""
    need("node")
    bomb = (
        "import os, time\nn = 0\ntry:\n  for _ in range(2000):\n"
        "    if os.fork() == 0: time.sleep(20); os._exit(0)\n"
        "    n += 1\nexcept OSError as e: print(e.strerror)\nprint(n, flush=True)\nos.kill(0, 9)"
    )
    policy(work, "[profile.default]\nlimits = { pids = 200 }\n", person)
    done = person.bawn("run", "-q", "--", "python3", "-c", bomb, cwd=work, timeout=120)
    said, made = done.stdout.splitlines()
    assert said == "Resource temporarily unavailable", done
    assert 150 < int(made) < 200
    node = person.bawn("run", "-q", "--", "node", "-e", "console.log(6 * 7)", cwd=work)
    assert node.stdout == "42\n", node.stderr


def test_tmp_is_full_at_its_size(person: Person, work: Path) -> None:
    done = person.sh("head -c 65m /dev/zero > /tmp/f; ls -l /tmp/f | cut -d' ' -f5", work)
    assert "No space left" in done.stderr
    assert int(done.stdout) == 64 << 20


def test_home_is_full_at_its_size(person: Person, work: Path) -> None:
    policy(work, '[profile.default]\nlimits = { home = "8MiB" }\n', person)
    done = person.sh("head -c 9m /dev/zero > ~/f", work)
    assert "No space left" in done.stderr


def test_open_files(person: Person, work: Path) -> None:
    policy(work, "[profile.default]\nlimits = { open_files = 100 }\n", person)
    many = (
        "f = []\ntry:\n  while True: f.append(open('/dev/null'))\n"
        "except OSError as e: print(len(f) < 100, e.strerror)"
    )
    assert person.bawn("run", "-q", "python3", "-c", many, cwd=work).stdout == "True Too many open files\n"


def test_cpu(users: dict[str, Person]) -> None:
    """Half a processor: three busy seconds yield about one and a half."""
    root = users["root"]
    work = root.make(root.home / "cpu")
    policy(work, "[profile.default]\nlimits = { cpus = 0.5 }\n", root)
    burn = (
        "import time\nt = time.monotonic()\nwhile time.monotonic() - t < 3: pass\nprint(time.process_time())"
    )
    before = time.monotonic()
    done = root.bawn("run", "-q", "--json", "python3", "-c", burn, cwd=work)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - before > 3
    assert record(done.stderr)["reason"] == "exit"
    steps = "n = 0\nimport time\nt = time.monotonic()\nwhile time.monotonic() - t < 2: n += 1\nprint(n)"
    slow = int(root.bawn("run", "-q", "python3", "-c", steps, cwd=work).stdout)
    policy(work, "[profile.default]\nlimits = { cpus = 1 }\n", root)
    fast = int(root.bawn("run", "-q", "python3", "-c", steps, cwd=work).stdout)
    assert slow < 0.75 * fast


def test_a_plain_137_is_not_called_a_limit(person: Person, work: Path) -> None:
    done = person.sh("exit 137", work, "--json")
    assert done.returncode == 137
    assert record(done.stderr)["limits_hit"] == []
