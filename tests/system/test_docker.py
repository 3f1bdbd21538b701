"""Engine docker: a private dockerd, real runsc, the exact contract, and everything told apart."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.conftest import BAWN, Person, need, policy, processes, record, starve
from tests.system.lab import IMAGE, Lab, runsc_of
from tests.system.meddler import Change, Meddler
from tests.system.packages import NPM_TEST, PYTEST, give, npm_was_tested

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    need("dockerd", "ip", "nsenter", "runsc", BAWN)
    with Lab() as made:
        made.import_image()
        runsc_of(made, BAWN)
        yield made


@pytest.fixture
def person(users: dict[str, Person]) -> Person:
    """root, acting for the ordinary user who owns the work directory."""
    return users["root"]


@pytest.fixture
def work(users: dict[str, Person]) -> Iterator[Path]:
    owner = users["rootless"]
    path = owner.make(owner.home / f"docker-{os.urandom(4).hex()}")
    yield path
    subprocess.run(["rm", "-rf", path], check=True)


def run(
    lab: Lab, person: Person, work: Path, *words: str, **more: object
) -> "subprocess.CompletedProcess[str]":
    return person.bawn("run", "--engine", "docker", "--image", IMAGE, *words, cwd=work,
                       **lab.environment, **more)  # type: ignore[arg-type]  # fmt: skip


def sh(
    lab: Lab, person: Person, work: Path, script: str, *options: str
) -> "subprocess.CompletedProcess[str]":
    return run(lab, person, work, "-q", *options, "--", "sh", "-c", script)


def nothing_left(lab: Lab) -> None:
    assert lab.docker("ps", "--all", "--quiet").stdout == ""
    assert not processes(str(lab.root / "exec/runtime")) and not processes(
        "runsc-sandbox --root=" + str(lab.root)
    )
    assert not lab.runs()


def test_inside(lab: Lab, person: Person, work: Path) -> None:
    names = "python3 -c 'import socket; print(*[n for _, n in socket.if_nameindex()])'"
    script = (
        "uname -r; id -u; grep -E 'CapPrm|CapEff|CapBnd' /proc/self/status | sort -u | cut -f2; "
        "touch /x /etc/x /usr/x ~/x /tmp/x made; cp /usr/bin/true /tmp/t; /tmp/t; echo $?; "
        "cp /usr/bin/true $TMPDIR/t; $TMPDIR/t; echo $?; " + names + "; pwd"
    )
    done = sh(lab, person, work, script)
    assert done.stdout.split() == [
        "4.4.0", str(work.stat().st_uid), *["0000000000000000"] * 3, "126", "0", "lo", str(work),
    ], done.stderr  # fmt: skip
    assert done.stderr.count("cannot touch") == 3
    assert (work / "made").stat().st_uid == work.stat().st_uid
    nothing_left(lab)


def test_no_variable_that_was_not_named(lab: Lab, person: Person, work: Path) -> None:
    """The image brings FROM_IMAGE, docker HOSTNAME: neither reaches the command."""
    done = run(lab, person, work, "-q", "--", "env", MY_TOKEN="leak")
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert "FROM_IMAGE" not in names
    assert "HOSTNAME" not in names
    assert "leak" not in done.stdout
    assert names == {
        "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER", "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 42", 42), ("kill -9 $$", 137), ("exit 125", 125), ("exit 127", 127)],
)
def test_exit_codes(lab: Lab, person: Person, work: Path, script: str, code: int) -> None:
    assert sh(lab, person, work, script).returncode == code


def test_not_found_and_not_executable(lab: Lab, person: Person, work: Path) -> None:
    assert run(lab, person, work, "-q", "no-such-program").returncode == 127
    library = os.path.basename(os.path.realpath("/usr/bin/python3"))  # python3.11, python3.13
    assert run(lab, person, work, "-q", f"/usr/lib/{library}/os.py").returncode == 126


def test_output_and_input(lab: Lab, person: Person, work: Path) -> None:
    done = run(lab, person, work, "-q", "cat", input="line\n" * 1000)
    assert done.stdout == "line\n" * 1000
    assert done.stderr == ""


def test_time_out(lab: Lab, person: Person, work: Path) -> None:
    start = time.monotonic()
    done = sh(lab, person, work, "trap '' TERM; sleep 100 & sleep 100", "--timeout", "2s")
    assert done.returncode == 124
    assert time.monotonic() - start < 6
    nothing_left(lab)


def test_time_out_of_a_sentry_that_hangs(lab: Lab, person: Person, work: Path) -> None:
    """docker asks runsc to pass the signal on, and runsc waits for the Sentry."""
    words = (
        "--engine",
        "docker",
        "--image",
        IMAGE,
        "--timeout",
        "3s",
        "--",
        "sh",
        "-c",
        "echo begun; sleep 60",
    )
    child = person.start("run", *words, cwd=work, env=person.environment(**lab.environment))
    assert child.stdout is not None and child.stdout.readline() == "begun\n"
    made = json.loads(lab.docker("inspect", lab.docker("ps", "--quiet").stdout.strip()).stdout)
    os.kill(made[0]["State"]["Pid"], signal.SIGSTOP)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 124, err
    nothing_left(lab)


def test_memory_twice_the_cap(lab: Lab, person: Person, work: Path) -> None:
    policy(work, '[profile.default]\nlimits = { memory = "300MiB" }\n', person)
    eat = "b = []\nfor _ in range(600): b.append(b'x' * (1 << 20))\nprint('all of it')"
    done = run(lab, person, work, "python3", "-c", eat)
    assert done.returncode == 137, done
    assert "memory limit" in done.stderr
    assert "all of it" not in done.stdout


def test_a_kill_that_the_sentry_outlives_ends_the_run(lab: Lab, person: Person, work: Path) -> None:
    policy(work, '[profile.default]\nlimits = { memory = "300MiB" }\n', person)
    words = ("--engine", "docker", "--image", IMAGE, "--", "sh", "-c", "echo begun; sleep 60")
    child = person.start("run", *words, cwd=work, env=person.environment(**lab.environment))
    assert child.stdout is not None and child.stdout.readline() == "begun\n"
    made = json.loads(lab.docker("inspect", lab.docker("ps", "--quiet").stdout.strip()).stdout)
    starve(made[0]["State"]["Pid"])
    start = time.monotonic()
    _, err = child.communicate(timeout=30)
    assert time.monotonic() - start < 8
    assert child.returncode == 137 and "memory limit" in err, err
    nothing_left(lab)


def test_a_fork_bomb_stops_and_node_starts(lab: Lab, person: Person, work: Path) -> None:
    bomb = (
        "import os, time\nn = 0\ntry:\n  for _ in range(2000):\n"
        "    if os.fork() == 0: time.sleep(20); os._exit(0)\n    n += 1\nexcept OSError: pass\nprint(n)"
    )
    policy(work, "[profile.default]\nlimits = { pids = 256 }\n", person)
    done = run(lab, person, work, "-q", "--json", "--timeout", "60s", "--", "python3", "-c", bomb)
    assert record(done.stderr)["limits_hit"] == ["pids"] or 200 < int(done.stdout) < 256, done
    node = run(lab, person, work, "-q", "--", "node", "-e", "console.log(6 * 7)")
    assert node.stdout == "42\n", node.stderr
    nothing_left(lab)


def test_tmp_is_full_at_its_size(lab: Lab, person: Person, work: Path) -> None:
    done = sh(lab, person, work, "head -c 65m /dev/zero > /tmp/f; stat -c %s /tmp/f")
    assert "No space left" in done.stderr
    assert int(done.stdout) == 64 << 20


def test_read_only_is_the_kernels(lab: Lab, person: Person, work: Path) -> None:
    (work / "f").write_text("old")
    os.chmod(work / "f", 0o666)
    policy(work, '[profile.default]\nworkdir_mode = "ro"\n', person)
    done = sh(
        lab, person, work, "echo new > f; python3 -c \"import os; os.open('f', os.O_RDONLY | os.O_TRUNC)\""
    )
    assert (work / "f").read_text() == "old", done.stderr


def test_masks_at_the_start(lab: Lab, person: Person, work: Path) -> None:
    (work / ".env").write_text("SECRET")
    (work / "deep").mkdir()
    (work / "deep/.env.local").write_text("SECRET")
    done = sh(lab, person, work, "cat .env deep/.env.local; grep -r SECRET .; mv .env x; cat x; echo end")
    assert done.stdout == "end\n"


def test_a_masked_name_that_appears_ends_the_run(lab: Lab, person: Person, work: Path) -> None:
    child = person.start("run", "--engine", "docker", "--image", IMAGE, "--", "sh", "-c",
                         "echo up; sleep 20; cat .env", cwd=work,
                         env=person.environment(**lab.environment))  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"
    (work / ".env").write_text("SECRET")
    out, err = child.communicate(timeout=20)
    assert child.returncode == 125
    assert "SECRET" not in out
    assert "masked name" in err
    nothing_left(lab)


def test_killed_bawn_leaves_no_container(lab: Lab, person: Person, work: Path) -> None:
    for after in (0.1, 0.3, 0.5, 0.8, 1.5):
        child = person.start("run", "-q", "--engine", "docker", "--image", IMAGE, "--", "sleep", "60",
                             cwd=work, env=person.environment(**lab.environment),
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        time.sleep(after)
        child.kill()
        child.wait()
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline and lab.docker("ps", "--all", "--quiet").stdout:
        time.sleep(0.2)
    assert person.bawn("sweep", cwd=work, **lab.environment).returncode == 0  # type: ignore[arg-type]
    nothing_left(lab)


@pytest.fixture(params=["owner", "rootless"])
def either(request: pytest.FixtureRequest, users: dict[str, Person], lab: Lab) -> Person:
    """root for the owner of the directory, and an ordinary user who may use docker."""
    os.chmod(lab.socket, 0o666)
    return users[request.param]


@pytest.mark.parametrize(("agent", "said"), [("claude", "2.1.332"), ("codex", "0.145.0")])
def test_real_agents(lab: Lab, either: Person, work: Path, agent: str, said: str) -> None:
    need(agent, root=False)
    policy(work, f'[profile.default]\nengine = "docker"\nimage = "{IMAGE}"\nagent = "{agent}"\n', either)
    done = either.bawn(agent, "--version", cwd=work, timeout=120, **lab.environment)
    assert said in done.stdout, done.stderr


def test_npm_ci_and_test(lab: Lab, either: Person, work: Path, npm_package: Path, registry: str) -> None:
    give(npm_package, work)
    policy(work, '[profile.default]\npass_env = ["npm_config_registry"]\n', either)
    words = ("-q", "--", "sh", "-c", NPM_TEST)
    done = run(lab, either, work, *words, timeout=240, npm_config_registry=registry)
    assert done.returncode == 0, done.stdout + done.stderr
    npm_was_tested(work)


def test_pytest_of_a_real_package(lab: Lab, either: Person, work: Path, pypi_package: Path) -> None:
    give(pypi_package, work)
    done = run(lab, either, work, "-q", "--", "sh", "-c", PYTEST, timeout=240)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def bind(request: dict[str, Any]) -> None:
    request["HostConfig"]["Mounts"].append({"Type": "bind", "Source": "/var/tmp", "Target": "/extra"})


def mount_gone(request: dict[str, Any]) -> None:
    request["HostConfig"]["Mounts"] = [
        m for m in request["HostConfig"]["Mounts"] if m["Target"] != "/etc/resolv.conf"
    ]


def writable(request: dict[str, Any]) -> None:
    for mount in request["HostConfig"]["Mounts"]:
        mount.pop("ReadOnly", None)


def host(**values: object) -> Change:
    return lambda request: request["HostConfig"].update(values)


def config(**values: object) -> Change:
    return lambda request: request.update(values)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (bind, "/extra"),
        (mount_gone, "/etc/resolv.conf"),
        (writable, "mount"),
        (host(Runtime="runc"), "Runtime"),
        (host(Privileged=True), "Privileged"),
        (host(Memory=0, MemorySwap=0), "Memory"),
        (host(ReadonlyRootfs=False), "ReadonlyRootfs"),
        (host(CapDrop=[], CapAdd=["SYS_ADMIN"]), "CapDrop"),
        (host(NetworkMode="host"), "NetworkMode"),
        (config(User="0:0"), "User"),
        (config(Env=["HOME=/home/agent", "EXTRA=1"]), "environment EXTRA"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_docker_made_is_compared(
    lab: Lab, person: Person, work: Path, change: Change, named: str
) -> None:
    """Seen before the command begins, and ended."""
    with Meddler(lab.socket, lab.root / f"meddler-{os.urandom(3).hex()}", change) as meddler:
        done = person.bawn("run", "--engine", "docker", "--image", IMAGE, "--", "touch", "ran", cwd=work,
                           DOCKER_HOST=meddler.host)  # fmt: skip
    assert done.returncode == 125, done.stderr
    assert "not make the container as planned" in done.stderr
    assert named in done.stderr
    assert not (work / "ran").exists()
    nothing_left(lab)


def test_no_runsc_runtime_is_refused(person: Person, work: Path) -> None:
    need("dockerd", "ip", "nsenter", BAWN)
    with Lab() as bare:
        done = run(bare, person, work, "--", "touch", "ran")
        assert done.returncode == 125
        assert "bawn setup docker" in done.stderr
        assert not (work / "ran").exists()


def test_a_runtime_that_is_really_runc_is_refused(person: Person, work: Path) -> None:
    """Also where its entry looks like bawn's own: PID 1 asks the kernel itself."""
    need("dockerd", "ip", "nsenter", "runc", BAWN)
    with Lab() as bare:
        bare.import_image()
        wrapper = bare.root / "bawn/runsc-docker"
        wrapper.parent.mkdir()
        wrapper.write_text('#!/bin/sh\n# docker_stage.py\nexec runc "$@"\n')
        wrapper.chmod(0o755)
        bare.config.write_text(json.dumps({"bridge": "none", "runtimes": {"runsc": {"path": str(wrapper)}}}))
        os.kill(int((bare.root / "pid").read_text()), 1)
        time.sleep(1)
        done = run(bare, person, work, "--", "touch", "ran")
        assert done.returncode == 125, done
        assert "this kernel is not gVisor's" in done.stderr
        assert not (work / "ran").exists()


def test_a_daemon_that_is_down(person: Person, work: Path) -> None:
    need("docker", BAWN)
    done = run_down(person, work)
    assert done.returncode == 125
    assert "docker start" in done.stderr or "start docker" in done.stderr
    start = time.monotonic()
    assert run_down(person, work, "--wait", "2s").returncode == 125
    assert time.monotonic() - start >= 2


def run_down(person: Person, work: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return person.bawn("run", "--engine", "docker", "--image", IMAGE, *options, "--", "true", cwd=work,
                       DOCKER_HOST="unix:///nonexistent/docker.sock")  # fmt: skip


def test_setup_undoes_itself_exactly(tmp_path: Path) -> None:
    need("dockerd", "ip", "nsenter", "runsc", BAWN)
    with Lab({"log-level": "warn"}) as bare:
        os.chmod(bare.config, 0o640)
        before, mode = bare.config.read_bytes(), bare.config.stat().st_mode
        runsc_of(bare, BAWN)
        assert "runsc" in bare.docker("info", "--format", "{{json .Runtimes}}").stdout
        assert json.loads(bare.config.read_text())["log-level"] == "warn"
        subprocess.run([BAWN, "setup", "docker", "--undo", "--config", bare.config], check=True)
        assert (bare.config.read_bytes(), bare.config.stat().st_mode) == (before, mode)
        assert not (bare.root / "bawn").exists()
