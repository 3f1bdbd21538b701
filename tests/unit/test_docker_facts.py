"""What is known of docker: captured answers, and every way to have none."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bawn.effects.docker_cgroup import directories, limiting
from bawn.errors import HostError
from bawn.facts import docker, programs
from bawn.facts.model import DockerFact, DockerRuntime
from bawn.plan.runtime_args import Fault, faults, openers
from tests.unit.fake_dockerd import FakeDockerd

# docker 20.10.24 of Debian 12, captured; shortened to what is read
INFO: dict[str, Any] = {
    "ServerVersion": "20.10.24+dfsg1", "KernelVersion": "6.18.44", "OperatingSystem": "Debian GNU/Linux 12",
    "MemoryLimit": True, "CpuCfsQuota": True, "PidsLimit": True, "CgroupDriver": "cgroupfs",
    "CgroupVersion": "1", "SecurityOptions": ["name=seccomp,profile=default"],
    "Runtimes": {
        "io.containerd.runc.v2": {"path": "runc"}, "runc": {"path": "runc"},
        "runsc": {"path": "/usr/bin/runsc", "runtimeArgs": ["--network=host"]},
    },
}  # fmt: skip
# docker 28 behind `docker info` with the daemon down, captured
DOWN = {
    "ServerErrors": ["Cannot connect to the Docker daemon at unix:///x.sock. Is the docker daemon running?"],
    "ClientInfo": {"Version": "28.2.2"},
}
SOCKET = "unix:///var/run/docker.sock"


def parsed(**changes: object) -> DockerFact:
    return docker.parse_info("/usr/bin/docker", SOCKET, json.dumps({**INFO, **changes}), "", "6.18.44")


def test_captured() -> None:
    fact = parsed()
    assert (fact.server, fact.problem, fact.cgroup) == ("20.10.24+dfsg1", "", "cgroupfs v1")
    assert not (fact.remote or fact.rootless or fact.userns or fact.lacks)
    assert [r.name for r in fact.runtimes] == ["io.containerd.runc.v2", "runc", "runsc"]
    assert fact.runtimes[2].args == ("--network=host",)


def test_a_newer_docker() -> None:
    """28: a shim by its type, and a status beside the path."""
    runtimes = {
        "runsc": {"runtimeType": "io.containerd.runsc.v1", "options": {"TypeUrl": "x"}},
        "runc": {"path": "runc", "status": {"org.opencontainers.runtime-spec.features": "{}"}},
    }
    fact = parsed(Runtimes=runtimes)
    assert fact.runtimes[1].kind == "io.containerd.runsc.v1"
    assert [f.rule for f in faults(fact)] == ["BWN713"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"SecurityOptions": ["name=rootless"]}, "rootless"),
        ({"SecurityOptions": ["name=userns"]}, "userns"),
        ({"KernelVersion": "6.6.0-linuxkit"}, "remote"),
    ],
)
def test_kinds_of_daemon(changes: dict[str, object], field: str) -> None:
    fact = parsed(**changes)
    assert getattr(fact, field) is True
    assert "BWN712" in [f.rule for f in faults(fact)]


def test_limits_that_the_daemon_cannot_hold() -> None:
    assert parsed(MemoryLimit=False, PidsLimit=False).lacks == ("memory", "pids")


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", "not json", json.dumps(DOWN), '{"message": "no"}'])
def test_no_answer(text: str) -> None:
    fact = docker.parse_info("/usr/bin/docker", SOCKET, text, "complaint")
    assert fact.server == ""
    assert SOCKET in fact.problem
    assert fact.fix


def test_permission_denied_does_not_say_start() -> None:
    fact = docker.parse_info("/d", SOCKET, "", "permission denied while trying to connect")
    assert "usermod" in fact.fix


@pytest.mark.parametrize(
    ("where", "machine", "fix"),
    [
        ("unix:///home/u/.colima/default/docker.sock", "colima", "colima start"),
        ("unix:///home/u/.lima/default/sock/docker.sock", "lima", "limactl start"),
        (
            "unix:///home/u/.docker/desktop/docker.sock",
            "Docker Desktop",
            "systemctl --user start docker-desktop",
        ),
        ("unix:///home/u/.rd/docker.sock", "Rancher Desktop", "rdctl start"),
        ("tcp://192.0.2.1:2376", "", "start the daemon at tcp://192.0.2.1:2376"),
        ("ssh://u@build.test", "", "start the daemon at ssh://u@build.test"),
        ("context lost", "", "start the daemon at context lost"),
    ],
)
def test_daemons_elsewhere(where: str, machine: str, fix: str) -> None:
    assert docker.is_remote(where)
    assert docker.machine(where) == machine
    assert docker.start_command(where).startswith(fix)


def test_a_link_to_a_virtual_machines_socket(tmp_path: Path) -> None:
    (tmp_path / ".colima/default").mkdir(parents=True)
    (tmp_path / ".colima/default/docker.sock").write_text("")
    (tmp_path / "docker.sock").symlink_to(tmp_path / ".colima/default/docker.sock")
    assert docker.machine(f"unix://{tmp_path}/docker.sock") == "colima"
    assert not docker.is_remote(f"unix://{tmp_path}/other.sock")


# The endpoint: the client's own order


def context(home: Path, name: str, host: str) -> None:
    where = home / ".docker/contexts/meta" / hashlib.sha256(name.encode()).hexdigest()
    where.mkdir(parents=True)
    (where / "meta.json").write_text(json.dumps({"Name": name, "Endpoints": {"docker": {"Host": host}}}))


def test_endpoint(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert docker.endpoint({}, home) == docker.DEFAULT
    context(tmp_path, "colima", "unix:///c.sock")
    context(tmp_path, "other", "tcp://o.test:1")
    (tmp_path / ".docker/config.json").write_text('{"currentContext": "colima"}')
    assert docker.endpoint({}, home) == "unix:///c.sock"
    assert docker.endpoint({"DOCKER_CONTEXT": "other"}, home) == "tcp://o.test:1"
    assert docker.endpoint({"DOCKER_CONTEXT": "default"}, home) == docker.DEFAULT
    assert docker.endpoint({"DOCKER_CONTEXT": "other", "DOCKER_HOST": "unix:///h"}, home) == "unix:///h"
    assert docker.endpoint({"DOCKER_CONTEXT": "lost"}, home) == "context lost"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"currentContext": null}'])
def test_a_configuration_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker/config.json").write_text(text)
    assert docker.endpoint({}, str(tmp_path)) == docker.DEFAULT


@pytest.mark.parametrize("meta", ["", "[]", "{}", '{"Endpoints": 1}', '{"Endpoints": {"docker": {}}}'])
def test_a_context_that_cannot_be_read_is_not_the_default(tmp_path: Path, meta: str) -> None:
    context(tmp_path, "c", "x")
    where = next((tmp_path / ".docker/contexts/meta").iterdir())
    (where / "meta.json").write_text(meta)
    assert docker.endpoint({"DOCKER_CONTEXT": "c"}, str(tmp_path)) == "context c"


# Observing


def never(
    argv: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None,
    input: bytes | None = None, cap: int = 1 << 20,
) -> Any:  # fmt: skip
    raise HostError(f"{argv[0]} did not answer in {timeout:g} s")


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/docker").write_text("")
    (tmp_path / "bin/docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/d.sock")


def test_no_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:relative::.")
    monkeypatch.setattr(programs, "SYSTEM", ())
    fact = docker.observe(never)
    assert (fact.problem, fact.fix) == ("docker is not installed", "sudo apt-get install docker.io")


@pytest.mark.usefixtures("client")
def test_over_the_socket(tmp_path: Path) -> None:
    body = json.dumps({**INFO, "KernelVersion": os.uname().release}).encode()
    with FakeDockerd(tmp_path, {("GET", "/info"): (200, body)}):
        fact = docker.observe(never)
    assert (fact.problem, fact.server, fact.remote) == ("", "20.10.24+dfsg1", False)


@pytest.mark.usefixtures("client")
def test_a_daemon_that_comes_while_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes: list[FakeDockerd] = []

    def sleep(_: float) -> None:
        if not fakes:
            fakes.append(
                FakeDockerd(tmp_path, {("GET", "/info"): (200, json.dumps(INFO).encode())}).__enter__()
            )

    told: list[str] = []
    monkeypatch.setattr("time.sleep", sleep)
    assert docker.observe(never, 0, told.append).problem
    assert told == []
    assert not docker.observe(never, 30, told.append).problem
    fakes[0].__exit__()
    assert len(told) == 1
    assert "docker start" in told[0] or "start docker" in told[0]


@pytest.mark.usefixtures("client")
def test_a_socket_that_this_user_may_not_use_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise HostError("no answer at /d.sock: Permission denied")

    monkeypatch.setattr("bawn.unix_http.ask", denied)
    fact = docker.observe(never, wait=1e9)
    assert "usermod" in fact.fix


@pytest.mark.usefixtures("client")
def test_a_remote_daemon_that_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "ssh://u@build.test")
    fact = docker.observe(never)
    assert fact.remote
    assert "did not answer" in fact.problem


# Runtimes


def runtime(
    *args: str, path: str = "/usr/local/lib/bawn/runsc-docker", script: str = "docker_stage.py"
) -> DockerRuntime:
    return DockerRuntime("runsc", path, args, path, script)


def with_runtime(one: DockerRuntime | None) -> DockerFact:
    return DockerFact("/d", SOCKET, "20.10", (one,) if one else ())


def rules(one: DockerRuntime | None) -> list[str]:
    return [f.rule for f in faults(with_runtime(one))]


def test_the_runtime_of_setup() -> None:
    assert faults(with_runtime(runtime())) == ()


def test_no_runtime() -> None:
    assert rules(None) == ["BWN706"]


@pytest.mark.parametrize("path", ["runc", "/usr/bin/runc", "/usr/sbin/crun", "/opt/youki"])
def test_the_name_proves_nothing(path: str) -> None:
    assert rules(runtime(path=path)) == ["BWN713"]


def test_a_link_to_runc(tmp_path: Path) -> None:
    (tmp_path / "runc").write_text("")
    (tmp_path / "runsc").symlink_to(tmp_path / "runc")
    assert rules(docker.runtime("runsc", {"path": f"{tmp_path}/runsc"})) == ["BWN713"]


def test_runsc_itself_without_bawns_program(tmp_path: Path) -> None:
    (tmp_path / "runsc").write_bytes(b"\x7fELF docker_stage.py")
    assert rules(docker.runtime("runsc", {"path": f"{tmp_path}/runsc"})) == ["BWN711"]


@pytest.mark.parametrize(
    ("args", "found"),
    [
        (("--network=host",), "network=host"),
        (("-network=host",), "network=host"),
        (("--network", "host"), "network=host"),
        (("--ignore-cgroups",), "ignore-cgroups"),
        (("--ignore-cgroups=true",), "ignore-cgroups"),
        (("-ignore-cgroups=1",), "ignore-cgroups"),
        (("--host-uds=all",), "host-uds=all"),
        (("--host-uds", "open"), "host-uds=open"),
        (("--platform=kvm",), "platform=kvm"),
        (("--debug", "--net-raw"), "net-raw"),
        (("--ignore-cgroups=false",), ""),
        (("--network=none",), ""),
        (("--network=sandbox", "host"), ""),
        (("--platform=systrap",), ""),
        (("network=host",), ""),
    ],
)
def test_arguments_that_open_every_box(args: tuple[str, ...], found: str) -> None:
    assert [name.lstrip("-") for name, _, _ in openers(runtime(*args))] == ([found] if found else [])


def test_arguments_hidden_in_a_script(tmp_path: Path) -> None:
    script = tmp_path / "wrap"
    script.write_text(
        '#!/bin/sh\n# --ignore-cgroups is not said\nexec /usr/bin/runsc "--network=host" "$@"\n'
    )
    one = docker.runtime("runsc", {"path": str(script)})
    assert [name for name, _, _ in openers(one)] == ["--network=host"]


def test_a_note_does_not_stop_a_run() -> None:
    assert [f.severity for f in faults(with_runtime(runtime("--host-uds=open")))] == ["note"]
    assert all(isinstance(f, Fault) and f.fix for f in faults(with_runtime(runtime("--network=host"))))


# Control groups of a container

V1 = """\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""
V2 = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


@pytest.mark.parametrize(
    ("groups", "mounts", "found"),
    [
        ("8:pids:/docker/X\n4:memory:/docker/X\n1:cpu,cpuacct:/docker/X\n0::/docker/X\n", V1,
         [("pids", "/sys/fs/cgroup/pids/docker/X"), ("memory", "/sys/fs/cgroup/memory/docker/X")]),
        ("0::/system.slice/docker-X.scope\n", V2, [("", "/sys/fs/cgroup/system.slice/docker-X.scope")]),
        ("", V1, []),
        ("0::/x\n", "", []),
    ],
)  # fmt: skip
def test_limiting_groups(groups: str, mounts: str, found: list[tuple[str, str]]) -> None:
    assert limiting(groups, mounts) == found


def test_every_group_of_a_process() -> None:
    found = directories("1:cpu,cpuacct:/docker/X\n0::/docker/X\n", V1)
    assert found == [
        ("cpu", "/sys/fs/cgroup/cpu,cpuacct/docker/X"), ("cpuacct", "/sys/fs/cgroup/cpu,cpuacct/docker/X"),
        ("", "/sys/fs/cgroup/unified/docker/X"),
    ]  # fmt: skip
