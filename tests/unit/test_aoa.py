"""AoA's targets: hardened by force, AoA's words, its legacy argv, and none of its laxness."""

from typing import Any

import pytest

from bawn.errors import PolicyError
from bawn.teams.aoa import (
    HARDENED,
    TMPFS,
    build_docker_run_args,
    resolve_docker_sandbox_config,
    resolve_gvisor_sandbox_target,
)

IMAGE = "aoa/agent-base:latest"
WEAKENED = {
    "provider": "gvisor",
    "image": IMAGE,
    "network": "bridge",
    "allowHostGateway": True,
    "isolation": {
        "user": "0:0", "capDropAll": False, "readOnlyRootfs": False, "noNewPrivileges": False,
        "ipcPrivate": False, "tmpfs": ["/tmp:rw,exec,suid"], "memory": "64g", "pidsLimit": 99999,
        "seccompProfile": "/tmp/open.json",
    },
}  # fmt: skip
# Seed 001, "Hardened flag set", in the order of DESIGN 4.
SEED = (
    "run --rm --runtime runsc --user 1000:1000 --cap-drop ALL --security-opt no-new-privileges --read-only "
    "--tmpfs /tmp:rw,noexec,nosuid,size=64m --tmpfs /home/agent:rw,nosuid,size=256m --memory 2g "
    "--memory-swap 2g --cpus 2 --pids-limit 512 --ipc private --workdir /workspace "
    "--mount type=bind,source=/repo,target=/workspace --network none --env HOME=/home/agent "
    f"{IMAGE} claude -p hi"
).split()


def test_the_seed_argv_word_for_word() -> None:
    target = resolve_gvisor_sandbox_target({"provider": "gvisor", "image": IMAGE})
    argv = build_docker_run_args(
        target, local_cwd="/repo", command="claude", args=["-p", "hi"], env={"HOME": "/home/agent"}
    )
    assert argv == SEED


@pytest.mark.parametrize("more", [{}, {"multi_tenant": True}])
def test_multi_tenant_forces_everything(more: dict[str, bool]) -> None:
    target = resolve_gvisor_sandbox_target(WEAKENED, **more)
    assert target == {
        "type": "sandbox-docker", "image": IMAGE, "workdir": "/workspace", "network": "none",
        "runtime": "runsc", "allowHostGateway": False, "isolation": HARDENED,
    }  # fmt: skip
    argv = build_docker_run_args(target, local_cwd="/r", command="x", host_gateway_active=True)
    assert "--add-host" not in argv


def test_self_hosted_is_honoured() -> None:
    target = resolve_gvisor_sandbox_target(WEAKENED, multi_tenant=False)
    assert target["network"] == "bridge"
    assert target["allowHostGateway"] is True
    assert target["isolation"]["user"] == "0:0"
    assert target["isolation"]["capDropAll"] is False
    assert target["isolation"]["cpus"] == "2"
    argv = build_docker_run_args(target, local_cwd="/r", command="x")
    assert "--cap-drop" not in argv
    assert "--add-host" not in argv  # the callback bridge does not run
    argv = build_docker_run_args(target, local_cwd="/r", command="x", host_gateway_active=True)
    assert argv[argv.index("--add-host") + 1] == "host.docker.internal:host-gateway"


def test_legacy_argv_when_nothing_is_opted_in() -> None:
    target = {"type": "sandbox-docker", "image": "node:22"}
    argv = build_docker_run_args(
        target, local_cwd="/repo", command="node", args=["a"], env={"A": "b"}, stdin=""
    )
    assert argv == [
        "run",
        "--rm",
        "--interactive",
        "--workdir",
        "/workspace",
        "--mount",
        "type=bind,source=/repo,target=/workspace",
        "--network",
        "bridge",
        "--env",
        "A=b",
        "node:22",
        "node",
        "a",
    ]
    assert build_docker_run_args({**target, "remove": False}, local_cwd="/r", command="x")[:2] == [
        "run",
        "--workdir",
    ]


def test_words_of_the_errors() -> None:
    with pytest.raises(PolicyError, match=r"^gVisor environments require config\.image\.$"):
        resolve_gvisor_sandbox_target({"provider": "gvisor"})
    with pytest.raises(PolicyError, match=r"^gVisor environments require config\.image\.$"):
        resolve_gvisor_sandbox_target({"image": "  "})
    with pytest.raises(PolicyError, match=r'^Unsupported sandbox provider "modal"$'):
        resolve_docker_sandbox_config({"provider": "modal", "image": IMAGE})
    with pytest.raises(PolicyError, match=r"^Sandbox Docker environments require config\.image\.$"):
        resolve_docker_sandbox_config({"provider": "docker"}, multi_tenant=False)


WRONG: list[tuple[str, Any]] = [
    ("memory", 2048),
    ("memory", "2gb"),
    ("memory", ""),
    ("cpus", 2),
    ("cpus", "0"),
    ("cpus", "0.00"),
    ("pidsLimit", "512"),
    ("pidsLimit", True),
    ("pidsLimit", 0),
    ("pidsLimit", 1.5),
    ("ulimitNofile", "4096"),
    ("user", 1000),
    ("user", "root"),
    ("capDropAll", "true"),
    ("readOnlyRootfs", 1),
    ("tmpfs", "/tmp"),
    ("tmpfs", [64]),
    ("seccompProfile", "rel"),
    ("memroy", "2g"),
]


@pytest.mark.parametrize(("key", "value"), WRONG)
@pytest.mark.parametrize("multi_tenant", [True, False])
def test_a_wrong_type_is_an_error_never_a_dropped_limit(key: str, value: Any, multi_tenant: bool) -> None:
    config = {"image": IMAGE, "isolation": {key: value}}
    with pytest.raises(PolicyError, match=f"isolation.{key}"):
        resolve_gvisor_sandbox_target(config, multi_tenant)
    with pytest.raises(PolicyError, match=f"isolation.{key}"):
        build_docker_run_args({"type": "sandbox-docker", **config}, local_cwd="/r", command="x")


@pytest.mark.parametrize(("key", "value"), [("network", "Bridge"), ("network", "container:x"), ("network", 1),
                                            ("runtime", "runc"), ("runtime", "")])  # fmt: skip
def test_unknown_network_or_runtime_is_an_error(key: str, value: Any) -> None:
    with pytest.raises(PolicyError, match=key):
        resolve_gvisor_sandbox_target({"image": IMAGE, key: value}, multi_tenant=False)
    with pytest.raises(PolicyError, match=key):
        build_docker_run_args(
            {"type": "sandbox-docker", "image": IMAGE, key: value}, local_cwd="/r", command="x"
        )


def test_a_plain_docker_environment_is_hardened_where_tenants_share() -> None:
    resolved = resolve_docker_sandbox_config({"provider": "docker", "image": "node:22"})
    assert resolved["provider"] == "sandbox-docker"
    assert resolved["runtime"] == "runsc"
    assert resolved["isolation"]["tmpfs"] == list(TMPFS)
    plain = resolve_docker_sandbox_config({"provider": "docker", "image": "node:22"}, multi_tenant=False)
    assert plain == {"provider": "sandbox-docker", "image": "node:22"}


def test_secrets_stand_by_name_only() -> None:
    argv = build_docker_run_args(
        {"type": "sandbox-docker", "image": IMAGE}, local_cwd="/r", command="x",
        env={"KEY": "value", "A": "b"}, secrets=["KEY", "OTHER"],
    )  # fmt: skip
    assert "value" not in " ".join(argv)
    assert [argv[i + 1] for i, w in enumerate(argv) if w == "--env"] == ["KEY", "A=b", "OTHER"]


@pytest.mark.parametrize("path", ["relative", "/a\nb", "/a\0b", ""])
def test_paths_that_docker_cannot_hold(path: str) -> None:
    with pytest.raises(PolicyError, match="cannot mount"):
        build_docker_run_args({"type": "sandbox-docker", "image": IMAGE}, local_cwd=path, command="x")


def test_commas_and_quotes_are_csv() -> None:
    argv = build_docker_run_args({"type": "sandbox-docker", "image": IMAGE}, local_cwd='/a,b"c', command="x")
    assert argv[argv.index("--mount") + 1] == 'type=bind,"source=/a,b""c",target=/workspace'


def test_an_image_that_is_an_option_of_docker() -> None:
    """A tenant's `image` would otherwise become a flag, and the command the image."""
    for image in ("--privileged", "-v/:/host", " --volume=/:/host"):
        with pytest.raises(PolicyError, match="image"):
            resolve_gvisor_sandbox_target({"image": image})
        with pytest.raises(PolicyError, match="image"):
            build_docker_run_args({"type": "sandbox-docker", "image": image}, local_cwd="/r", command="x")


def test_the_forced_set_is_not_shared() -> None:
    first = resolve_gvisor_sandbox_target({"image": IMAGE})
    first["isolation"]["tmpfs"].append("/evil:rw")
    assert resolve_gvisor_sandbox_target({"image": IMAGE})["isolation"]["tmpfs"] == list(TMPFS)
    assert HARDENED["tmpfs"] == list(TMPFS)
