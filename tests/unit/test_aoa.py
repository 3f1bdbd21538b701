"""AoA's targets: forced values, legacy parity, strict types, errors word for word."""

from typing import Any

import pytest

from bawn.errors import PolicyError
from bawn.teams.aoa import HARDENED, build_docker_run_args, resolve_gvisor_sandbox_target, warnings

WEAKENED = {
    "provider": "gvisor",
    "image": "aoa/agent-base:latest",
    "network": "host",
    "allowHostGateway": True,
    "isolation": {
        "user": "0:0", "capDropAll": False, "noNewPrivileges": False, "readOnlyRootfs": False,
        "ipcPrivate": False, "tmpfs": ["/tmp:rw,exec,suid"], "memory": "900g", "cpus": "64",
        "pidsLimit": 99999, "seccompProfile": "/tenant.json",
    },
}  # fmt: skip
LEGACY = {"type": "sandbox-docker", "image": "node:22"}


def build(target: dict[str, Any], **more: Any) -> list[str]:
    return build_docker_run_args(target, **{"local_cwd": "/repo", "command": "node", **more})


def test_the_whole_contract_of_seed_001() -> None:
    target = resolve_gvisor_sandbox_target({"provider": "gvisor", "image": "aoa/agent-base:latest"})
    argv = build(target, command="claude", args=["-p", "hi"], env={"HOME": "/home/agent"}, stdin=True)
    assert argv == [
        "run", "--rm", "--interactive", "--runtime", "runsc", "--user", "1000:1000", "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", "--read-only",
        "--tmpfs", "/tmp:rw,noexec,nosuid,size=64m", "--tmpfs", "/home/agent:rw,nosuid,size=256m",
        "--memory", "2g", "--memory-swap", "2g", "--cpus", "2", "--pids-limit", "512", "--ipc", "private",
        "--workdir", "/workspace", "--mount", "type=bind,source=/repo,target=/workspace",
        "--network", "none", "--env", "HOME=/home/agent", "aoa/agent-base:latest", "claude", "-p", "hi",
    ]  # fmt: skip


def test_multi_tenant_forces_everything_that_could_weaken() -> None:
    target = resolve_gvisor_sandbox_target(WEAKENED, multi_tenant=True)
    assert target["isolation"] == HARDENED
    assert (target["network"], target["allowHostGateway"], target["runtime"]) == ("none", False, "runsc")
    assert resolve_gvisor_sandbox_target(WEAKENED) == target  # a caller that forgets is hardened


def test_self_hosted_is_honoured() -> None:
    target = resolve_gvisor_sandbox_target(WEAKENED, multi_tenant=False)
    assert target["isolation"] == {**HARDENED, **WEAKENED["isolation"]}  # type: ignore[dict-item]
    assert (target["network"], target["allowHostGateway"]) == ("host", True)


@pytest.mark.parametrize(
    ("asked", "vouched", "got"),
    [("bridge", False, "none"), ("bridge", True, "bridge"), ("host", True, "none"), (None, True, "none")],
)
def test_a_tenant_gets_the_bridge_only_where_it_is_filtered(asked: str, vouched: bool, got: str) -> None:
    config = {"image": "x", "network": asked}
    assert resolve_gvisor_sandbox_target(config, filtered_bridge=vouched)["network"] == got


def test_the_forced_set_is_not_shared() -> None:
    first = resolve_gvisor_sandbox_target({"image": "x"})
    first["isolation"]["tmpfs"].append("/evil:rw")
    assert resolve_gvisor_sandbox_target({"image": "x"})["isolation"] == HARDENED


@pytest.mark.parametrize("image", [None, "", "  ", 7, ["x"]])
def test_no_image(image: object) -> None:
    with pytest.raises(PolicyError) as error:
        resolve_gvisor_sandbox_target({"provider": "gvisor", "image": image})
    assert str(error.value) == "gVisor environments require config.image."


def test_another_provider() -> None:
    with pytest.raises(PolicyError) as error:
        resolve_gvisor_sandbox_target({"provider": "e2b", "image": "x"})
    assert str(error.value) == 'Unsupported sandbox provider "e2b"'


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"isolation": {"memory": 2}}, "config.isolation.memory: got 2"),
        ({"isolation": {"memory": ""}}, "config.isolation.memory: got ''"),
        ({"isolation": {"cpus": 2}}, "config.isolation.cpus: got 2"),
        ({"isolation": {"pidsLimit": "512"}}, "config.isolation.pidsLimit: got '512'"),
        ({"isolation": {"pidsLimit": True}}, "config.isolation.pidsLimit: got True"),
        ({"isolation": {"pidsLimit": 0}}, "config.isolation.pidsLimit: got 0"),
        ({"isolation": {"pidsLimit": 1.5}}, "config.isolation.pidsLimit: got 1.5"),
        ({"isolation": {"capDropAll": "false"}}, "config.isolation.capDropAll: got 'false'"),
        ({"isolation": {"capDropAll": 0}}, "config.isolation.capDropAll: got 0"),
        ({"isolation": {"tmpfs": "/tmp:rw"}}, "config.isolation.tmpfs: got '/tmp:rw'"),
        ({"isolation": {"tmpfs": [1]}}, "config.isolation.tmpfs: got [1]"),
        ({"isolation": {"memroy": "1g"}}, "config.isolation.memroy: no such key"),
        ({"isolation": ["user"]}, "config.isolation: got ['user']"),
        ({"isolation": []}, "config.isolation: got []"),
        ({"network": "brigde"}, "config.network: got 'brigde'; wanted one of none, bridge, host"),
        ({"network": 1}, "config.network: got 1"),
        ({"runtime": "runc"}, "config.runtime: got 'runc'; wanted one of runsc"),
        ({"runtime": "kata"}, "config.runtime: got 'kata'"),
        ({"allowHostGateway": "yes"}, "config.allowHostGateway: got 'yes'"),
        ({"isolaton": {}}, "config.isolaton: no such key"),
        ({"workdir": 5}, "config.workdir: got 5"),
    ],
)
@pytest.mark.parametrize("multi_tenant", [True, False])
def test_strict_types(config: dict[str, Any], named: str, multi_tenant: bool) -> None:
    with pytest.raises(PolicyError) as error:
        resolve_gvisor_sandbox_target({"image": "x", **config}, multi_tenant=multi_tenant)
    assert any(problem.startswith(named) for problem in error.value.problems), error.value.problems


def test_all_problems_at_once() -> None:
    with pytest.raises(PolicyError) as error:
        resolve_gvisor_sandbox_target({"image": "x", "network": "x", "isolation": {"memory": 1, "cpus": 2}})
    assert len(error.value.problems) == 3


def test_null_is_not_said() -> None:
    config: dict[str, Any] = {
        "image": "x",
        "network": None,
        "isolation": {"memory": None, "user": None, "tmpfs": []},
    }
    assert resolve_gvisor_sandbox_target(config, multi_tenant=False)["isolation"] == HARDENED


# The argv


def test_legacy_parity_where_nothing_is_opted_in() -> None:
    assert build(LEGACY, args=["x.js"], env={"A": "b"}) == [
        "run", "--rm", "--workdir", "/workspace", "--mount", "type=bind,source=/repo,target=/workspace",
        "--network", "bridge", "--env", "A=b", "node:22", "node", "x.js",
    ]  # fmt: skip


def test_legacy_variations() -> None:
    argv = build(
        {**LEGACY, "remove": False, "workdir": "/w", "network": "host", "runtime": "runc"}, stdin=True
    )
    assert argv == [
        "run", "--interactive", "--workdir", "/w", "--mount", "type=bind,source=/repo,target=/w",
        "--network", "host", "node:22", "node",
    ]  # fmt: skip


@pytest.mark.parametrize(("active", "allowed"), [(True, False), (False, True), (False, False)])
def test_no_host_gateway_unless_both(active: bool, allowed: bool) -> None:
    assert "--add-host" not in build({**LEGACY, "allowHostGateway": allowed}, host_gateway_active=active)


def test_the_host_gateway_where_both() -> None:
    argv = build({**LEGACY, "allowHostGateway": True}, host_gateway_active=True, env={"A": "b"})
    at = argv.index("--add-host")
    assert argv[at - 2 : at + 3] == [
        "--network", "bridge", "--add-host", "host.docker.internal:host-gateway", "--env",
    ]  # fmt: skip


def test_seccomp_and_open_files_stand_in_their_place() -> None:
    isolation = {"noNewPrivileges": True, "seccompProfile": "/p.json", "readOnlyRootfs": True, "pidsLimit": 9,
                 "ulimitNofile": 64, "ipcPrivate": True}  # fmt: skip
    argv = build({**LEGACY, "runtime": "runsc", "isolation": isolation})
    assert argv[2:15] == [
        "--runtime", "runsc", "--security-opt", "no-new-privileges", "--security-opt", "seccomp=/p.json",
        "--read-only", "--pids-limit", "9", "--ulimit", "nofile=64:64", "--ipc", "private",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"type": "local", "image": "x"}, 'Unsupported execution target "local"'),
        ({"type": "sandbox-docker"}, 'executionTarget.image is required for target "sandbox-docker"'),
    ],
)
def test_errors_word_for_word(target: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError) as error:
        build(target)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "wrong",
    [
        {"network": "bridg"},
        {"runtime": "runsc2"},
        {"isolation": {"memory": 2}},
        {"isolation": {"pidsLimit": "512"}},
        {"env": {"A": 1}},
        {"remove": "no"},
        {"unknown": 1},
        {"image": "--privileged"},
    ],
)
def test_a_wrong_target_is_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        build({**LEGACY, **wrong})


def test_no_value_of_a_secret_in_the_argv() -> None:
    argv = build(LEGACY, env={"KEY": "hunter2", "A": "b"}, secrets=frozenset({"KEY"}))
    assert "hunter2" not in " ".join(argv)
    assert argv[argv.index("--env") + 1] == "KEY"


@pytest.mark.parametrize("name", ["DOCKER_HOST", "docker_config", "LD_PRELOAD", "PATH"])
def test_a_secret_that_would_steer_the_client(name: str) -> None:
    with pytest.raises(PolicyError):
        build(LEGACY, env={name: "x"}, secrets=frozenset({name}))


def test_env_of_the_wrong_type() -> None:
    with pytest.raises(PolicyError) as error:
        build(LEGACY, env={"A": 1})
    assert error.value.problems == ("run.env: got {'A': 1}; wanted an object of texts",)


@pytest.mark.parametrize("cwd", ["repo", "./repo", "C:\\repo", "/a\nb", "/a\\b", ""])
def test_a_source_that_docker_would_take_for_something_else(cwd: str) -> None:
    with pytest.raises(PolicyError):
        build(LEGACY, local_cwd=cwd)


def test_a_comma_does_not_add_a_mount_option() -> None:
    argv = build(LEGACY, local_cwd='/a,readonly"b')
    assert argv[argv.index("--mount") + 1] == 'type=bind,"source=/a,readonly""b",target=/workspace'


def test_warnings() -> None:
    target = resolve_gvisor_sandbox_target(
        {"image": "x", "isolation": {"seccompProfile": "/p"}}, multi_tenant=False
    )
    assert len(warnings(target)) == 2
    assert "runsc ignores it" in warnings(target)[0]
    assert "/home/agent without exec" in warnings(target)[1]
    assert warnings(LEGACY) == ()
