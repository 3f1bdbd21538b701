"""Engine docker: every way a run can end, or not begin; nothing is left of any."""

import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.conftest import BAWN, Person, need, policy, processes, record
from tests.system.lab import IMAGE, Lab, runsc_of

pytestmark = pytest.mark.system
IGNORES = "trap '' TERM INT HUP; echo up; sleep 60 & wait; wait; wait; sleep 60"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    need("dockerd", "ip", "nsenter", "runsc", BAWN)
    with Lab() as made:
        made.import_image()
        runsc_of(made, BAWN)
        yield made


@pytest.fixture
def person(users: dict[str, Person]) -> Person:
    return users["root"]


@pytest.fixture
def work(users: dict[str, Person]) -> Iterator[Path]:
    owner = users["rootless"]
    path = owner.make(owner.home / f"docker-{os.urandom(4).hex()}")
    yield path
    subprocess.run(["rm", "-rf", path], check=True)


@pytest.fixture(autouse=True)
def nothing_left(lab: Lab) -> Iterator[None]:
    yield
    assert left(lab) == []


def left(lab: Lab) -> list[str]:
    found = lab.docker("ps", "--all", "--format", "container {{.Names}}").stdout.splitlines()
    found += [line for line in processes(str(lab.root)) if "runsc" in line or "bawn-guardian" in line]
    found += [f"run {path}" for path in lab.runs()]
    return found


def start(
    lab: Lab, person: Person, work: Path, script: str, *options: str, **more: object
) -> "subprocess.Popen[str]":
    """A run that has said "up"."""
    words = ("--engine", "docker", "--image", IMAGE, "--json", *options, "--", "sh", "-c", script)
    child = person.start("run", "-q", *words, cwd=work, env=person.environment(**lab.environment), **more)
    assert child.stdout
    assert child.stdout.readline().strip() == "up"
    return child


def run(
    lab: Lab, person: Person, work: Path, *words: str, image: str = IMAGE
) -> "subprocess.CompletedProcess[str]":
    options = ("--engine", "docker", "--image", image, "--json")
    return person.bawn("run", *options, *words, cwd=work, **lab.environment)  # type: ignore[arg-type]


# Signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_reaches_the_command(lab: Lab, person: Person, work: Path, number: int) -> None:
    child = start(
        lab, person, work, "trap 'echo got; exit 7' TERM HUP INT USR1; echo up; while :; do sleep 0.1; done"
    )
    child.send_signal(number)
    out, err = child.communicate(timeout=20)
    assert (out, child.returncode) == ("got\n", 7)
    assert record(err)["reason"] == "exit"


def test_a_command_that_dies_of_a_signal(lab: Lab, person: Person, work: Path) -> None:
    child = start(lab, person, work, "echo up; exec sleep 60")
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=20)
    assert child.returncode == 128 + signal.SIGTERM
    assert record(err)["reason"] == "signal"


def test_a_second_interrupt_kills(lab: Lab, person: Person, work: Path) -> None:
    child = start(lab, person, work, IGNORES)
    child.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert child.poll() is None
    before = time.monotonic()
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=20)
    assert child.returncode == 137
    assert time.monotonic() - before < 3


@pytest.mark.parametrize("after", [0.02, 0.1, 0.15, 0.2, 0.3])
def test_a_signal_before_the_command_began(lab: Lab, person: Person, work: Path, after: float) -> None:
    child = person.start("run", "-q", "--engine", "docker", "--image", IMAGE, "--", "sleep", "60", cwd=work,
                         env=person.environment(**lab.environment))  # fmt: skip
    time.sleep(after)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=20)
    assert child.returncode in (128 + signal.SIGTERM, -signal.SIGTERM)


@pytest.mark.parametrize("limit", ["1s", "2s"])
def test_a_time_out_ends_the_whole_tree_within_two_seconds(
    lab: Lab, person: Person, work: Path, limit: str
) -> None:
    before = time.monotonic()
    done = run(lab, person, work, "--timeout", limit, "--", "sh", "-c", IGNORES)
    assert done.returncode == 124, done.stderr
    assert time.monotonic() - before < int(limit[0]) + 2.5
    told = record(done.stderr)
    assert (told["reason"], told["limits_hit"]) == ("timeout", ["time"])


# A terminal


def test_a_terminal(lab: Lab, person: Person, work: Path) -> None:
    """A size, an echo, ^P that is not held back (docker's own key to let go), ^C as a key."""
    script = (
        "import os, time, tty\nwhile os.get_terminal_size() == (0, 0): time.sleep(0.01)\ntty.setcbreak(0)\n"
        "print(*os.get_terminal_size(), 'up', os.isatty(0), flush=True)\n"
        "while c := os.read(0, 1): print('key', c[0], flush=True)"
    )
    words = ["run", "-q", "--engine", "docker", "--image", IMAGE, "--", "python3", "-c", script]
    main, terminal = os.openpty()
    fcntl.ioctl(main, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    before = termios.tcgetattr(terminal)

    def take() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    env = person.environment(**lab.environment, TERM="xterm")
    child = subprocess.Popen([BAWN, *words], cwd=work, env=env, stdin=terminal, stdout=terminal,
                             stderr=terminal, preexec_fn=take)  # fmt: skip
    seen = b""

    def until(word: bytes) -> None:
        nonlocal seen
        deadline = time.monotonic() + 20
        while word not in seen:
            assert select.select([main], [], [], deadline - time.monotonic())[0], seen
            seen += os.read(main, 4096)

    until(b"77 33 up True")
    os.write(main, b"x\x10y")
    until(b"key 16")
    until(b"key 121")
    os.write(main, b"\x03")
    assert child.wait(20) == 130
    assert termios.tcgetattr(terminal) == before
    os.close(main)
    os.close(terminal)


# Limits, as the record tells them


def test_memory_is_told_apart(lab: Lab, person: Person, work: Path) -> None:
    policy(work, '[profile.default]\nlimits = { memory = "256MiB" }\n', person)
    eat = "b = []\nfor _ in range(512): b.append(b'x' * (1 << 20))"
    done = run(lab, person, work, "-q", "python3", "-c", eat)
    assert done.returncode == 137, done.stderr
    told = record(done.stderr)
    assert (told["reason"], told["limits_hit"]) == ("memory", ["memory"])
    assert 200 << 20 < int(str(told["peak_memory"])) <= 256 << 20


def test_processes_are_told_apart(lab: Lab, person: Person, work: Path) -> None:
    policy(work, "[profile.default]\nlimits = { pids = 128 }\n", person)
    bomb = "import os, time\nfor _ in range(2000):\n    if os.fork() == 0: time.sleep(30)\nprint('all')"
    done = run(lab, person, work, "-q", "python3", "-c", bomb)
    assert "all" not in done.stdout
    assert done.returncode == 137
    told = record(done.stderr)
    assert (told["reason"], told["limits_hit"]) == ("pids", ["pids"])


def test_a_plain_137_is_not_called_a_limit(lab: Lab, person: Person, work: Path) -> None:
    done = run(lab, person, work, "-q", "sh", "-c", "exit 137")
    assert done.returncode == 137
    told = record(done.stderr)
    assert told["limits_hit"] == []
    assert int(str(told["peak_memory"])) > 1 << 20


# What does not begin


def make_image(lab: Lab, name: str, *changes: str) -> None:
    lab.docker("build", "--quiet", "--tag", name, "-", input="\n".join([f"FROM {IMAGE}", *changes]))


def test_an_image_that_is_not_there(lab: Lab, person: Person, work: Path) -> None:
    done = run(lab, person, work, "--", "true", image="nowhere/none:1")
    assert done.returncode == 125
    assert "docker pull nowhere/none:1" in done.stderr


def test_an_image_with_volumes(lab: Lab, person: Person, work: Path) -> None:
    make_image(lab, "with-volume", "VOLUME /data")
    done = run(lab, person, work, "--", "touch", "/data/x", image="with-volume")
    assert done.returncode == 125
    assert "/data" in done.stderr
    assert lab.docker("volume", "ls", "--quiet").stdout == ""


def test_an_image_that_would_run_things_of_its_own(lab: Lab, person: Person, work: Path) -> None:
    """Its entry point, its user, its health check and its variables do not count."""
    make_image(lab, "busy", 'ENTRYPOINT ["/bin/false"]', 'CMD ["x"]', "USER root", "ENV LEAK=1 PATH=/none",
               "HEALTHCHECK --interval=1s CMD touch /home/agent/health", "WORKDIR /var")  # fmt: skip
    done = run(lab, person, work, "-q", "--", "sh", "-c", "sleep 2; env; id -u; ls ~; pwd", image="busy")
    assert done.returncode == 0, done.stderr
    assert "LEAK" not in done.stdout
    assert done.stdout.split()[-2:] == [str(work.stat().st_uid), str(work)]


def test_the_persons_own_docker_configuration_adds_nothing(lab: Lab, person: Person, work: Path) -> None:
    """`proxies` in config.json sets variables in every container; the agent could read PID 1's."""
    proxies = {"default": {"httpProxy": "http://user:hunter2@proxy.test:3128"}}
    config = person.home / ".docker/config.json"
    config.parent.mkdir(exist_ok=True)
    config.write_text(json.dumps({"proxies": proxies}))
    try:
        script = "tr '\\0' '\\n' < /proc/1/environ; env; cat /etc/resolv.conf"
        done = run(lab, person, work, "-q", "--", "sh", "-c", script)
    finally:
        config.unlink()
    assert done.returncode == 0, done.stderr
    assert "hunter2" not in done.stdout
    assert "nameserver" not in done.stdout


def test_a_start_that_fails_leaves_no_process(person: Person, work: Path) -> None:
    """runsc by itself refuses to start on some kernels, and leaves its sandbox behind."""
    need("dockerd", "ip", "nsenter", "runsc", "runc", BAWN)
    with Lab() as bare:
        bare.import_image()
        wrapper = bare.root / "broken"
        wrapper.write_text(
            '#!/bin/sh\n# docker_stage.py\ncase " $* " in *" start "*) exit 1;; esac\n'
            "exec unshare --mount --propagation slave sh -c "
            '\'mount -t tmpfs -o ro none /proc/sys/net; exec runsc "$@"\' runsc "$@"\n'
        )
        wrapper.chmod(0o755)
        bare.config.write_text(json.dumps({"bridge": "none", "runtimes": {"runsc": {"path": str(wrapper)}}}))
        os.kill(int((bare.root / "pid").read_text()), signal.SIGHUP)
        time.sleep(1)
        done = run(bare, person, work, "--", "touch", "ran")
        assert done.returncode == 125, done
        assert "docker could not start the container" in done.stderr
        assert not (work / "ran").exists()
        assert left(bare) == []


def test_a_secret_is_in_no_command_line(lab: Lab, person: Person, work: Path) -> None:
    policy(work, '[profile.default]\nsecrets = ["MY_TOKEN"]\n', person)
    script = "echo up; test \"$MY_TOKEN\" = hun''ter2 && sleep 3"
    words = ("--engine", "docker", "--image", IMAGE, "--", "sh", "-c", script)
    env = person.environment(**lab.environment, MY_TOKEN="hunter2")
    child = person.start("run", "-q", *words, cwd=work, env=env)
    assert child.stdout
    assert child.stdout.readline() == "up\n"
    lines = processes("hunter2")
    guardians = [pid.split()[0] for pid in processes("bawn-guardian") if str(lab.socket) in pid]
    environments = [Path(f"/proc/{pid}/environ").read_bytes() for pid in guardians]
    child.communicate(timeout=20)
    assert child.returncode == 0
    assert lines == []
    assert environments
    assert not any(b"hunter2" in text for text in environments)


# Death of bawn, of the client, of the daemon


@pytest.mark.parametrize("after", [0.05, 0.15, 0.25, 0.35, 0.5, 0.9])
def test_killed_bawn_and_its_guardian(lab: Lab, person: Person, work: Path, after: float) -> None:
    """Even then the next start finds and removes what is left."""
    child = person.start("run", "-q", "--engine", "docker", "--image", IMAGE, "--", "sleep", "60", cwd=work,
                         env=person.environment(**lab.environment), stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    time.sleep(after)
    child.kill()
    for line in processes("bawn-guardian"):
        if str(lab.socket) in line:
            os.kill(int(line.split()[0]), signal.SIGKILL)
    child.wait()
    time.sleep(1.5)  # the client may still be about to make its container
    done = run(lab, person, work, "-q", "--", "true")
    assert done.returncode == 0, done.stderr


def test_killed_client(lab: Lab, person: Person, work: Path) -> None:
    child = start(lab, person, work, "echo up; sleep 60")
    clients = [line for line in processes("--pull never") if str(lab.socket) in line]
    os.kill(int(clients[0].split()[0]), signal.SIGKILL)
    _, err = child.communicate(timeout=20)
    assert child.returncode == 125
    assert "signal 9" in err


def test_killed_daemon(person: Person, work: Path) -> None:
    """The box ends with it; its run is kept until the daemon is back, or the run is taken away."""
    need("dockerd", "ip", "nsenter", "runsc", BAWN)
    with Lab() as other:
        other.import_image()
        runsc_of(other, BAWN)
        child = start(other, person, work, "echo up; sleep 60")
        os.kill(int((other.root / "pid").read_text()), signal.SIGKILL)
        _, err = child.communicate(timeout=30)
        assert child.returncode == 125, err
        assert "daemon went away" in err
        assert not [line for line in processes(str(other.root)) if "runsc-" in line]
        (run_directory,) = other.runs()
        swept = person.bawn("sweep", cwd=work)
        assert swept.returncode == 1
        assert f"container bawn-{run_directory.name}" in swept.stdout
        subprocess.run(["rm", "-rf", run_directory], check=True)


def test_waiting_for_a_daemon(person: Person, work: Path) -> None:
    need("dockerd", "ip", "nsenter", "runsc", BAWN)
    with Lab() as late:
        late.import_image()
        runsc_of(late, BAWN)
        late.stop()
        words = ("--engine", "docker", "--image", IMAGE, "--wait", "60s", "--", "sh", "-c", "echo up")
        child = person.start("run", *words, cwd=work, env=person.environment(**late.environment))
        time.sleep(1)
        assert child.poll() is None
        late.start()
        out, err = child.communicate(timeout=30)
        assert (out, child.returncode) == ("up\n", 0), err
        assert err.count("waiting for it") == 1


# Late masks


def test_a_masked_name_that_is_made_between_plan_and_start_is_seen(
    lab: Lab, person: Person, work: Path
) -> None:
    """Or it is in the plan, and covered: in no order is it read."""
    for delay in (0.02, 0.05, 0.08, 0.11, 0.2, 0.4):
        script = "n=0; while [ $n -lt 30 ]; do cat .env 2>/dev/null; n=$((n+1)); sleep 0.02; done"
        words = ("--engine", "docker", "--image", IMAGE, "--", "sh", "-c", script)
        child = person.start("run", "-q", *words, cwd=work, env=person.environment(**lab.environment))
        time.sleep(delay)
        (work / ".env").write_text("SECRET")
        out, err = child.communicate(timeout=30)
        (work / ".env").unlink()
        assert child.returncode in (0, 125), err
        if child.returncode == 0:
            assert "SECRET" not in out


def test_a_masked_file_that_is_saved_anew_ends_the_run(lab: Lab, person: Person, work: Path) -> None:
    (work / ".env").write_text("OLD")
    child = start(lab, person, work, "echo up; sleep 20; cat .env")
    (work / "new").write_text("SECRET")
    os.rename(work / "new", work / ".env")
    out, err = child.communicate(timeout=20)
    assert child.returncode == 125, err
    assert "SECRET" not in out
    assert record(err)["reason"] == "mask"


# Setup


def test_setup_that_breaks_the_daemon_is_taken_back(person: Person, work: Path) -> None:
    """A daemon that does not come up with the new file, and does with the old one."""
    need("dockerd", "ip", "nsenter", "runsc", BAWN)
    with Lab({"log-level": "warn"}) as other:
        before = other.config.read_bytes()
        script = other.root / "restart"
        log = other.root / "restart.log"
        script.write_text(
            f"#!/bin/sh\nkill $(cat {other.root}/pid); while [ -e {other.root}/pid ]; do sleep 0.1; done\n"
            f"grep -q runsc {other.config} && exit 1\n"
            f"setsid nsenter --net=/run/netns/{other.name} dockerd --config-file {other.config} "
            f"--data-root {other.root}/data --exec-root {other.root}/exec --pidfile {other.root}/pid "
            f"--host unix://{other.socket} >>{log} 2>&1 </dev/null &\n"
        )
        script.chmod(0o755)
        done = subprocess.run(
            [BAWN, "setup", "docker", "--apply", "--restart", "--restart-command", str(script), "--config",
             str(other.config), "--directory", str(other.root / "bawn")],
            env={**os.environ, **other.environment}, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 1, done.stdout + done.stderr
        assert "the old state is restored and verified" in done.stderr
        assert other.config.read_bytes() == before
        assert not (other.root / "bawn").exists()
        assert other.docker("version", check=False).returncode == 0
        subprocess.run(["sh", "-c", f"kill $(cat {other.root}/pid)"], check=True)


def test_doctor(lab: Lab, person: Person, work: Path) -> None:
    done = person.bawn("doctor", "--engine", "docker", "--json", cwd=work, **lab.environment)  # type: ignore[arg-type]
    found = {d["id"]: d for d in json.loads(done.stdout)}
    assert done.returncode == 0, done.stdout
    assert found["BWD404"]["state"] == "ok"
    assert "cgroup" in found["BWD203"]["text"]
