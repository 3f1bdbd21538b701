"""Facts -> diagnoses: what is here, what is missing, and the line that mends it. Pure."""

from bawn.facts import docker as docker_facts
from bawn.facts import runsc as runsc_facts
from bawn.facts.model import DockerFact, HostFact, RunscFact
from bawn.plan.runtime_args import openers
from bawn.typed import Literal, NamedTuple

State = Literal["ok", "note", "fail"]


class Diagnosis(NamedTuple):
    """One line of `bawn doctor`. `of` is what it is about: a fail of an engine stops that engine."""

    id: str
    of: Literal["host", "gvisor", "docker"]
    state: State
    text: str
    fix: str = ""


class Extras(NamedTuple):
    """What only doctor looks at."""

    nft: str  # version line, "" where nft is missing
    subuid: bool
    free: tuple[tuple[str, int], ...]  # (directory, free bytes)
    rmem_visible: bool  # /proc/sys/net/core/rmem_default, see DESIGN 10
    colima: str  # the mounts line of colima.yaml, "" where there is no colima


def diagnose(
    host: HostFact, runsc: RunscFact, docker: DockerFact | None, extras: Extras
) -> tuple[Diagnosis, ...]:
    """Everything a person should know before the first run."""
    found = [_runsc(runsc), *_limits(host), _userns(host), _kernel(host)]
    found += [_disk(path, free) for path, free in extras.free]
    nft: State = "ok" if extras.nft else "note"
    found.append(
        Diagnosis(
            "BWD301",
            "host",
            nft,
            extras.nft or "nft is not installed: no wall for bridges",
            "" if extras.nft else "sudo apt-get install nftables",
        )
    )
    if not extras.subuid:
        found.append(
            Diagnosis(
                "BWD302",
                "host",
                "note",
                "no subordinate ids for this user: none are needed, bawn maps only your own",
            )
        )
    if docker is not None:
        found += _docker(docker, runsc, extras)
    return tuple(found)


def _runsc(runsc: RunscFact) -> Diagnosis:
    if runsc.problem:
        return Diagnosis("BWD101", "gvisor", "fail", runsc.problem, runsc.fix)
    return Diagnosis(
        "BWD101",
        "gvisor",
        "ok",
        f"runsc {runsc.version} at {runsc.path}, platforms {' '.join(runsc.platforms)}",
    )


def _limits(host: HostFact) -> list[Diagnosis]:
    held = [name for name, _ in host.cgroup_roots]
    text = f"cgroup v{host.cgroup}" if host.cgroup else "no cgroup file system"
    if {"memory", "pids", "cpu"} <= set(held):
        swap = f"; {host.swap_note}" if host.swap_note else ""
        return [Diagnosis("BWD201", "host", "ok", f"{text}: memory, pids and cpu hold{swap}")]
    missing = ", ".join(c for c in ("memory", "pids", "cpu") if c not in held)
    return [
        Diagnosis(
            "BWD201",
            "host",
            "note",
            f"{text}: no {missing} group for uid {host.uid}. Engine gvisor then samples memory every "
            "0.1 s, binds whole processors, and leaves processes to gVisor's own limit",
            "sudo bawn run ..., or log in with a systemd user session that delegates controllers",
        )
    ]


def _userns(host: HostFact) -> Diagnosis:
    if host.userns or host.uid == 0:
        return Diagnosis("BWD202", "gvisor", "ok", "user namespaces can be made")
    return Diagnosis(
        "BWD202",
        "gvisor",
        "fail",
        "an ordinary user may not make user namespaces",
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0   # Ubuntu",
    )


def _kernel(host: HostFact) -> Diagnosis:
    """Late masks need seccomp user notification with continue: Linux 5.5."""
    version = tuple(int(p) for p in host.kernel.split("-")[0].split(".")[:2] if p.isdigit())
    if version >= (5, 12):  # mount_setattr(2); seccomp user notification is older
        return Diagnosis("BWD203", "gvisor", "ok", f"kernel {host.kernel}")
    return Diagnosis(
        "BWD203", "gvisor", "fail", f"kernel {host.kernel} is older than 5.12", "use a newer kernel"
    )


def _disk(path: str, free: int) -> Diagnosis:
    state: State = "ok" if free >= 1 << 30 else "note"
    return Diagnosis("BWD303", "host", state, f"{path} has {free >> 20} MiB free")


def _docker(docker: DockerFact, runsc: RunscFact, extras: Extras) -> list[Diagnosis]:
    if docker.problem:
        return [Diagnosis("BWD401", "docker", "fail", docker.problem, docker.fix)]
    found = [Diagnosis("BWD401", "docker", "ok", f"docker {docker.server} at {docker.endpoint}")]
    if docker.remote:
        found.append(
            Diagnosis(
                "BWD402",
                "docker",
                "fail",
                "the daemon runs on another machine or in a VM: its paths are not this machine's",
                "run bawn where the daemon runs",
            )
        )
    if extras.colima:
        found.append(Diagnosis("BWD403", "docker", "note", extras.colima))
    runtime = next((r for r in docker.runtimes if r.name == "runsc"), None)
    if runtime is None:
        text = "docker does not know the runtime runsc"
        return [*found, Diagnosis("BWD404", "docker", "fail", text, docker_facts.NO_RUNTIME)]
    found.append(Diagnosis("BWD404", "docker", "ok", f"runtime runsc is {runtime.path}"))
    for arg, why in openers(runtime):
        text = f"runtime runsc has {arg}: {why}"
        found.append(Diagnosis("BWD405", "docker", "fail", text, "remove it from daemon.json"))
    old = 0 < runsc_facts.release_date(runsc.version) < runsc_facts.NETWORK_FIXED
    if old and extras.rmem_visible and "bawn" not in runtime.path:
        text = (
            "this runsc is too old for this kernel under docker (a distribution package): it takes "
            "every network namespace for the host's and refuses to start"
        )
        found.append(Diagnosis("BWD406", "docker", "fail", text, docker_facts.NO_RUNTIME))
    return found


def colima_mounts(text: str) -> str:
    """What a colima.yaml says about mounts: an empty list means the whole home, writable."""
    lines = [line.split("#")[0].rstrip() for line in text.splitlines()]
    at = next((n for n, line in enumerate(lines) if line.startswith("mounts:")), -1)
    if at < 0:
        return "colima: no mounts line could be read; by default the whole home is mounted writable"
    value = lines[at].removeprefix("mounts:").strip()
    if value in ("[]", "null", "~", "") and not any(
        line.lstrip().startswith("- ") for line in lines[at + 1 : at + 2]
    ):
        return "colima: mounts is empty, so the whole home is mounted writable in the VM"
    return ""
