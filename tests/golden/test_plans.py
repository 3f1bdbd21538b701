"""Policy -> plan, as text that a person has read. BAWN_UPDATE=1 writes them anew."""

import json
import os
from pathlib import Path

import pytest

from bawn.facts.dirs import Dirs
from bawn.facts.model import (
    AgentFact,
    DockerFact,
    DockerRuntime,
    Facts,
    HostFact,
    ImageFact,
    RunscFact,
)
from bawn.facts.paths import observe as observe_paths
from bawn.facts.tree import observe as observe_trees
from bawn.plan import oci
from bawn.plan.compile import compile_plan
from bawn.plan.docker import Files, docker_argv
from bawn.plan.model import Plan, canonical
from bawn.plan.steps import steps
from bawn.policy.model import Policy
from bawn.policy.parse import default_policy, parse_policy, select
from bawn.teams.presets import setup

HERE = Path(__file__).parent / "plans"
TREE = {
    "src/shop/.env": "SECRET",
    "src/shop/main.py": "",
    "src/shop/.git/config": "",
    "src/shop/.git/hooks/pre-commit": "",
    "src/shop/bawn.toml": "",
    "vaults/notes/inbox/a.md": "",
    "vaults/notes/daily/b.md": "",
    "vaults/notes/.env": "SECRET",
}
CASES = {
    "defaults_as_root": ("", 0),
    "defaults_rootless": ("", 1001),
    "vault_with_write_roots": (
        'version = 1\n[profile.build]\nagent = "claude"\nworkdir = "~/src/shop"\n'
        'secrets = ["ANTHROPIC_API_KEY"]\n[[profile.build.mount]]\nsource = "~/vaults/notes"\n'
        'mode = "ro"\nwrite = ["inbox", "daily"]\n',
        0,
    ),
    "way_out": (
        'version = 1\n[profile.build]\nagent = "claude"\nworkdir = "~/src/shop"\negress = "proxy"\n'
        'allow = ["@anthropic", "*.example.test:8443"]\n[wall]\ncontrol_plane = ["203.0.113.0/24"]\n',
        1001,
    ),
    "docker": (
        'version = 1\n[profile.build]\nengine = "docker"\nimage = "agent-base"\ncommand = ["claude"]\n'
        'workdir = "~/src/shop"\nsecrets = ["ANTHROPIC_API_KEY"]\n',
        0,
    ),
}


def facts_of(home: Path, policy: Policy, uid: int) -> Facts:
    profile = select(policy, None)
    dirs = Dirs(f"{home}/.config/bawn", f"{home}/.local/state/bawn", "/run/bawn")
    host = HostFact(
        uid, uid, 1000 if uid == 0 else uid, 1000 if uid == 0 else uid, str(home), "host", "6.18.0",
        "x86_64", 1,
        (("memory", "/sys/fs/cgroup/memory"), ("pids", "/sys/fs/cgroup/pids"),
         ("cpu", "/sys/fs/cgroup/cpu")) if uid == 0 else (),
        True, 4194304, 24 << 30, 2,
    )  # fmt: skip
    paths = observe_paths(profile, str(home), f"{home}/src/shop", dirs)
    owned = tuple(p._replace(uid=host.invoker_uid, gid=host.invoker_gid, chain=()) for p in paths)
    runtime = DockerRuntime("runsc", "/opt/runsc-docker", (), script="docker_stage.py")
    docker = DockerFact("/usr/bin/docker", "unix:///var/run/docker.sock", "20.10", (runtime,))
    return Facts(
        host,
        RunscFact("/usr/bin/runsc", "0.0~20240729.0", ("systrap", "ptrace")),
        docker if profile.engine == "docker" else None,
        ImageFact(profile.image, ""),
        AgentFact("claude", "/usr/lib/node_modules/x/claude", ("/usr/lib/node_modules/x",),
                  ("/usr/lib/node_modules/x/claude",)),
        f"{home}/src/shop", dirs.state, dirs.runtime, owned, observe_trees(profile, paths),
        have_secrets=("ANTHROPIC_API_KEY",),
    )  # fmt: skip


def made(tmp_path: Path, text: str, uid: int) -> Plan:
    home = tmp_path / "home"
    for name, content in TREE.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(content)
    policy = parse_policy(text, f"{home}/src/shop/bawn.toml") if text else default_policy()
    facts = facts_of(home, policy, uid)
    return compile_plan(policy, select(policy, None), facts, () if text else ("true",),
                        setup(select(policy, None), facts))  # fmt: skip


def shown(plan: Plan, tmp_path: Path) -> str:
    parts = ["\n".join(step.describe() for step in steps(plan))]
    parts.append(json.dumps(plan.as_data(), indent=1, ensure_ascii=False))
    if plan.engine == "docker":
        parts.append("\n".join(docker_argv(plan, "bawn-RUN", Files("/OWN", "/EMPTY", True), tty=False)))
    else:
        bundle = oci.bundle(
            plan, rootfs="/ROOT", image=[("/IMAGE/etc", "/etc")], empty=oci.Empty("/EMPTY", "/EMPTY.D"),
            init="/INIT", seed="/SEED", tty=False, secrets={v.name: "***" for v in plan.env if v.secret},
        )  # fmt: skip
        parts.append(json.dumps(bundle, indent=1))
    return "\n\n".join(parts).replace(str(tmp_path), "/T") + "\n"


@pytest.mark.parametrize("name", CASES)
def test_plan(name: str, tmp_path: Path) -> None:
    text, uid = CASES[name]
    got = shown(made(tmp_path, text, uid), tmp_path)
    golden = HERE / f"{name}.txt"
    if os.environ.get("BAWN_UPDATE"):
        golden.write_text(got)
    assert got == golden.read_text()


@pytest.mark.parametrize("name", CASES)
def test_no_secret_value_and_one_id(name: str, tmp_path: Path) -> None:
    text, uid = CASES[name]
    one, two = made(tmp_path, text, uid), made(tmp_path, text, uid)
    assert one.id == two.id
    assert b"SECRET" not in canonical(one.as_data())


def test_canonical_form_is_rfc_8785(tmp_path: Path) -> None:
    import rfc8785

    for text, uid in CASES.values():
        data = made(tmp_path, text, uid).as_data()
        assert canonical(data) == rfc8785.dumps(data)
