"""Facts -> diagnoses: each lack has an id, a state, and a line that mends it."""

import json
from typing import Any

import pytest

from bawn.cli import doctor as cli
from bawn.facts import host
from bawn.facts.model import DockerFact, DockerRuntime, HostFact, RunscFact
from bawn.plan.doctor import Diagnosis, Extras, colima_mounts, diagnose

ROOT = host.observe()._replace(
    uid=0, kernel="6.1.0-21-amd64", cgroup=2, userns=True, swap_note="",
    cgroup_roots=tuple((c, "/sys/fs/cgroup") for c in ("memory", "pids", "cpu")),
)  # fmt: skip
USER = ROOT._replace(uid=1000, cgroup_roots=())
RUNSC = RunscFact("/usr/bin/runsc", "0.0~20240729.0", ("systrap", "ptrace"), usable=True)
RUNTIME = DockerRuntime("runsc", "/usr/local/lib/bawn/runsc-docker", (), script="docker_stage.py")
DOCKER = DockerFact(
    "/usr/bin/docker", "unix:///var/run/docker.sock", "20.10", (RUNTIME,), cgroup="systemd v2"
)
EXTRAS = Extras("nftables v1.0.6", "iptables v1.8.9", True, (("/var/lib/bawn", 80 << 30),), (), False, "")


def found(
    machine: HostFact = ROOT, runsc: RunscFact = RUNSC, docker: DockerFact | None = DOCKER, **extras: Any
) -> dict[tuple[str, str], Diagnosis]:
    return {(d.id, d.of): d for d in diagnose(machine, runsc, docker, EXTRAS._replace(**extras))}


def test_all_is_well() -> None:
    states = {d.state for d in found().values()}
    assert states == {"ok", "note"}
    assert [key for key, d in found().items() if d.state == "note"] == [("BWD202", "gvisor")]


def test_everything_that_is_not_well_has_a_fix() -> None:
    worlds = [
        found(USER), found(USER._replace(userns=False), userns=(("kernel.unprivileged_userns_clone", "0"),)),
        found(runsc=RunscFact("", "", (), "runsc (gVisor) is not installed", "install it")),
        found(docker=DOCKER._replace(server="", problem="down", fix="start it")),
        found(docker=DOCKER._replace(remote=True, rootless=True, lacks=("memory",), runtimes=())),
        found(docker=DOCKER._replace(runtimes=(RUNTIME._replace(args=("--network=host",)),))),
        found(mistakes_netns=True, docker=DOCKER._replace(runtimes=(RUNTIME._replace(script=""),))),
        found(nft="", iptables="", free=(("/run/bawn", 5 << 20),), colima="home"),
    ]  # fmt: skip
    for world in worlds:
        for diagnosis in world.values():
            assert diagnosis.fix or diagnosis.state != "fail", diagnosis


def test_without_runsc_neither_engine_is_ready() -> None:
    missing = found(runsc=RunscFact("", "", (), "not installed", "install it"))
    assert missing["BWD101", "gvisor"].state == "fail"
    assert missing["BWD101", "docker"].state == "fail"


def test_user_namespaces_stop_gvisor_and_not_docker() -> None:
    fact = RUNSC._replace(problem="an ordinary user may not make user namespaces", fix="x")
    world = found(
        USER._replace(userns=False), fact, userns=(("kernel.apparmor_restrict_unprivileged_userns", "1"),)
    )
    assert world["BWD101", "gvisor"].state == "fail"
    assert ("BWD101", "docker") not in world
    assert "kernel.apparmor_restrict_unprivileged_userns=0" in world["BWD204", "gvisor"].fix
    assert found(ROOT._replace(userns=False))["BWD204", "gvisor"].state == "note"  # root needs none


@pytest.mark.parametrize(
    ("kernel", "state"),
    [
        ("5.8.0-63-generic", "fail"),
        ("5.9.0", "ok"),
        ("5.10.0-28-amd64", "ok"),
        ("6.18.44-fc", "ok"),
        ("4.19.0", "fail"),
        ("x", "fail"),
    ],
)
def test_kernels(kernel: str, state: str) -> None:
    assert found(ROOT._replace(kernel=kernel))["BWD102", "gvisor"].state == state


def test_limits_are_told_by_engine_and_user() -> None:
    world = found()
    assert "memory, cpus and pids hold by cgroup" in world["BWD201", "gvisor"].text
    assert "sampled" in world["BWD202", "gvisor"].text
    assert "systemd v2" in world["BWD203", "docker"].text
    world = found(USER)
    assert "sampled" in world["BWD202", "gvisor"].text
    assert ("BWD201", "gvisor") not in world
    delegated = USER._replace(cgroup_roots=(("memory", "/x"), ("pids", "/x")))
    text = found(delegated)["BWD202", "gvisor"].text
    assert "no cpu group" in text
    assert "sampled" not in text
    assert "swap" in found(ROOT._replace(cgroup=1, swap_note="no swap accounting"))["BWD201", "gvisor"].text
    assert "no cgroup file system" in found(ROOT._replace(cgroup=0, cgroup_roots=()))["BWD201", "gvisor"].text


def test_docker_down_says_how_to_start_it() -> None:
    down = DOCKER._replace(server="", problem="the docker daemon does not answer", fix="colima start")
    diagnosis = found(docker=down)["BWD401", "docker"]
    assert (diagnosis.state, diagnosis.fix) == ("fail", "colima start")
    assert ("BWD203", "docker") not in found(docker=down)


@pytest.mark.parametrize(
    ("fact", "id", "state"),
    [
        (DOCKER._replace(runtimes=()), "BWD404", "fail"),
        (DOCKER._replace(runtimes=(RUNTIME._replace(path="runc"),)), "BWD404", "fail"),
        (DOCKER._replace(runtimes=(RUNTIME._replace(script=""),)), "BWD406", "fail"),
        (DOCKER._replace(runtimes=(RUNTIME._replace(args=("--ignore-cgroups",)),)), "BWD405", "fail"),
        (DOCKER._replace(runtimes=(RUNTIME._replace(args=("--host-uds=open",)),)), "BWD405", "note"),
        (DOCKER._replace(remote=True), "BWD402", "fail"),
        (DOCKER._replace(rootless=True), "BWD402", "fail"),
        (DOCKER, "BWD404", "ok"),
    ],
)
def test_docker(fact: DockerFact, id: str, state: str) -> None:
    assert found(docker=fact)[id, "docker"].state == state


def test_runsc_that_is_too_old_for_the_kernel_is_not_called_nested_docker() -> None:
    """The remedy is bawn's runtime entry, never runc."""
    bare = found(mistakes_netns=True, docker=DOCKER._replace(runtimes=(RUNTIME._replace(script=""),)))
    assert bare["BWD407", "docker"].state == "fail"
    assert "too old for this kernel" in bare["BWD407", "docker"].text
    assert "setup docker" in bare["BWD407", "docker"].fix
    assert "runc " not in bare["BWD407", "docker"].fix
    assert found(mistakes_netns=True)["BWD407", "docker"].state == "ok"


# colima.yaml


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cpu: 2\nmounts: []\n", "home"),
        ("mounts:\n", "home"),
        ("mounts: []   # the default\n", "home"),
        ("mounts: null\nvm: x\n", "home"),
        ("cpu: 2\n", "home"),
        ("", "home"),
        ("mounts:\n  - location: ~/vault\n    writable: false\n", ""),
        ("mounts:\n- location: ~/vault\n", ""),
        ("# mounts: []\nmounts:\n\n  - location: ~/v\n", ""),
        ('mounts: [{location: "~/v"}]\n', ""),
        ("mounts: [{location: x},\n", "unknown"),
        ("mounts: *all\n", "unknown"),
    ],
)
def test_colima(text: str, says: str) -> None:
    assert colima_mounts(text) == says


def test_colima_is_told() -> None:
    for word in ("home", "unknown"):
        assert "whole home" in found(colima=word)["BWD403", "docker"].text


# The verb


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str, docker: DockerFact
) -> tuple[int, str]:
    import argparse

    monkeypatch.setattr("bawn.facts.host.observe", lambda: ROOT)
    monkeypatch.setattr("bawn.facts.runsc.observe", lambda *_: RUNSC)
    monkeypatch.setattr("bawn.facts.docker.observe", lambda *_: docker)
    monkeypatch.setattr(cli, "_extras", lambda *_: EXTRAS)
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    return cli.run(parser.parse_args(words)), capsys.readouterr().out


def test_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    down = DOCKER._replace(server="", problem="down", fix="start it")
    assert run(monkeypatch, capsys, docker=down)[0] == 0
    code, out = run(monkeypatch, capsys, "--engine", "docker", docker=down)
    assert code == 1
    assert "fix: start it" in out
    assert out.endswith("engine docker: not ready (1 to mend)\n")
    assert run(monkeypatch, capsys, "--engine", "docker", docker=DOCKER)[0] == 0


def test_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(monkeypatch, capsys, "--json", docker=DOCKER)
    assert code == 0
    assert {"id", "of", "state", "text", "fix"} == set(json.loads(out)[0])
