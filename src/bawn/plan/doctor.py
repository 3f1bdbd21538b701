"""Facts -> diagnoses: what is here, what is missing, and the line that mends it. Pure.

BWD1xx runsc and the kernel, 2xx limits and namespaces, 3xx the machine, 4xx docker.
"""

from bawn.facts.model import DockerFact, HostFact, RunscFact
from bawn.plan.runtime_args import STAGE, faults
from bawn.typed import Literal, NamedTuple

State = Literal["ok", "note", "fail"]
Engine = Literal["host", "gvisor", "docker"]

_CONTROLLERS = ("memory", "cpu", "pids")
_LOW = 1 << 30  # bytes of free disk below which a note is due
# BWN rule of a fault -> BWD id of the diagnosis
_IDS = {"BWN706": "BWD404", "BWN710": "BWD405", "BWN711": "BWD406", "BWN712": "BWD402", "BWN713": "BWD404"}


class Diagnosis(NamedTuple):
    """One line of `bawn doctor`. `of` is what it is about: a fail of an engine stops that engine."""

    id: str
    of: Engine
    state: State
    text: str
    fix: str = ""


class Extras(NamedTuple):
    """What only doctor looks at. "" is "not there"."""

    nft: str  # version lines
    iptables: str
    subuid: bool
    free: tuple[tuple[str, int], ...]  # (directory, free bytes)
    userns: tuple[tuple[str, str], ...]  # (sysctl, value) of those that restrict user namespaces
    mistakes_netns: bool  # facts.runsc
    colima: str  # what colima.yaml says of mounts, "" where that is harmless or there is no colima


def diagnose(
    host: HostFact, runsc: RunscFact, docker: DockerFact | None, extras: Extras
) -> tuple[Diagnosis, ...]:
    """Everything a person should know before the first run."""
    found = [*_runsc(runsc), _kernel(host), *_limits(host, docker), _userns(host, extras)]
    found += _machine(extras)
    if docker is not None:
        found += _docker(docker, runsc, extras)
    return tuple(found)


def _runsc(runsc: RunscFact) -> list[Diagnosis]:
    """runsc is of both engines: what stops one stops the other, but for user namespaces."""
    engines: tuple[Engine, ...] = ("gvisor", "docker") if not runsc.usable else ("gvisor",)
    if runsc.problem:
        return [Diagnosis("BWD101", engine, "fail", runsc.problem, runsc.fix) for engine in engines]
    text = f"runsc {runsc.version} at {runsc.path}, platforms {' '.join(runsc.platforms)}"
    return [Diagnosis("BWD101", "gvisor", "ok", text)]


def _kernel(host: HostFact) -> Diagnosis:
    """Late masks need seccomp user notification with continue (5.5); launch.c, close_range (5.9)."""
    numbers = host.kernel.split("-")[0].split(".")[:2]
    version = tuple(int(part) for part in numbers if part.isdigit())
    if version >= (5, 9):
        return Diagnosis("BWD102", "gvisor", "ok", f"kernel {host.kernel}")
    text = f"kernel {host.kernel} is older than 5.9: no seccomp user notification, no close_range"
    return Diagnosis("BWD102", "gvisor", "fail", text, "use a newer kernel")


def _limits(host: HostFact, docker: DockerFact | None) -> list[Diagnosis]:
    """Which limits can hold, for each engine and way of running it."""
    version = f"cgroup v{host.cgroup}" if host.cgroup else "no cgroup file system"
    held = {name for name, _ in host.cgroup_roots}
    missing = [name for name in _CONTROLLERS if name not in held]
    found = []
    if host.uid == 0:
        swap = f"; {host.swap_note}" if host.swap_note else ""
        if missing:
            text = f"gvisor as root, {version}: no {', '.join(missing)} controller; {_instead(missing)}"
            fix = "mount the controllers, or boot with them: see your distribution's cgroup documentation"
            found.append(Diagnosis("BWD201", "gvisor", "note", text, fix))
        else:
            text = f"gvisor as root, {version}: memory, cpus and pids hold by cgroup{swap}"
            found.append(Diagnosis("BWD201", "gvisor", "ok", text))
        text = f"gvisor as an ordinary user: {_instead(_CONTROLLERS)}, unless systemd delegates controllers"
        found.append(Diagnosis("BWD202", "gvisor", "note", text))
    elif missing:
        text = f"gvisor as uid {host.uid}, {version}: no {', '.join(missing)} group; {_instead(missing)}"
        fix = "sudo bawn run ...; or log in with a systemd user session that delegates controllers"
        found.append(Diagnosis("BWD202", "gvisor", "note", text, fix))
    else:
        text = f"gvisor as uid {host.uid}, {version}: memory, cpus and pids hold by cgroup (delegated)"
        found.append(Diagnosis("BWD202", "gvisor", "ok", text))
    if docker is not None and docker.server and not docker.lacks:
        text = f"docker, {docker.cgroup}: memory, cpus and pids hold by cgroup"
        found.append(Diagnosis("BWD203", "docker", "ok", text))
    return found


def _instead(missing: tuple[str, ...] | list[str]) -> str:
    """What holds a limit without its controller."""
    other = {
        "memory": "memory is sampled every 0.1 s",
        "cpu": "cpus are bound to whole processors",
        "pids": "pids hold by gVisor's own limit",
    }
    return ", ".join(other[name] for name in missing)


def _userns(host: HostFact, extras: Extras) -> Diagnosis:
    if host.userns:
        return Diagnosis("BWD204", "gvisor", "ok", "an ordinary user may make user namespaces")
    values = ", ".join(f"{name} = {value}" for name, value in extras.userns) or "not known by what"
    mend = {"kernel.apparmor_restrict_unprivileged_userns": "0", "kernel.unprivileged_userns_clone": "1",
            "user.max_user_namespaces": "15000"}  # fmt: skip
    sets = " ".join(f"{name}={mend[name]}" for name, _ in extras.userns if name in mend)
    fix = f"sudo sysctl -w {sets}   (and in /etc/sysctl.d to keep it), or use sudo bawn" if sets else ""
    state: State = "note" if host.uid == 0 else "fail"
    return Diagnosis(
        "BWD204", "gvisor", state, f"an ordinary user may not make user namespaces ({values})", fix
    )


def _machine(extras: Extras) -> list[Diagnosis]:
    found = []
    for path, free in extras.free:
        low = free < _LOW
        text = f"{path} has {free >> 20} MiB free"
        found.append(Diagnosis("BWD301", "host", "note" if low else "ok", text, "make room" if low else ""))
    for number, (name, line) in enumerate((("nft", extras.nft), ("iptables", extras.iptables)), 302):
        state: State = "ok" if line else "note"
        package = "nftables" if name == "nft" else name
        fix = "" if line else f"sudo apt-get install {package}"
        text = line or f"{name} is not installed: needed only for egress by a docker bridge"
        found.append(Diagnosis(f"BWD{number}", "host", state, text, fix))
    if not extras.subuid:
        text = "no subordinate ids for this user: none are needed, bawn maps only your own"
        found.append(Diagnosis("BWD304", "host", "note", text))
    return found


def _docker(docker: DockerFact, runsc: RunscFact, extras: Extras) -> list[Diagnosis]:
    found = [Diagnosis("BWD403", "docker", "note", *_COLIMA[extras.colima])] if extras.colima else []
    if docker.problem:
        return [*found, Diagnosis("BWD401", "docker", "fail", docker.problem, docker.fix)]
    found.append(Diagnosis("BWD401", "docker", "ok", f"docker {docker.server} at {docker.endpoint}"))
    wrong = faults(docker)
    for fault in wrong:
        state: State = "fail" if fault.severity == "error" else "note"
        found.append(Diagnosis(_IDS[fault.rule], "docker", state, fault.text, fault.fix))
    runtime = next((r for r in docker.runtimes if r.name == "runsc"), None)
    if runtime and not any(_IDS[fault.rule] in ("BWD404", "BWD406") for fault in wrong):
        found.append(Diagnosis("BWD404", "docker", "ok", f"runtime runsc is {runtime.path}"))
    if extras.mistakes_netns:
        remedied = runtime is not None and STAGE in runtime.script
        text = (
            f"runsc {runsc.version} is too old for this kernel under docker (a distribution's package): it "
            "takes every network namespace for the machine's own and refuses to start"
        )
        if remedied:
            found.append(Diagnosis("BWD407", "docker", "ok", f"{text}; the runtime entry mends that"))
        else:
            found.append(
                Diagnosis("BWD407", "docker", "fail", text, "sudo bawn setup docker --apply --restart")
            )
    return found


_COLIMA_FIX = "list the mounts in ~/.colima/default/colima.yaml, then: colima restart"
_COLIMA = {
    "home": ("colima mounts the whole home writable in its VM: its mounts are empty", _COLIMA_FIX),
    "unknown": ("colima's mounts could not be read: it may mount the whole home writable", _COLIMA_FIX),
}


def colima_mounts(text: str) -> str:
    """What a colima.yaml says about mounts: "home" where the whole home is mounted writable (an empty
    list, or none), "unknown" where it cannot be told, "" where mounts are listed."""
    lines = [line.split(" #")[0].rstrip() for line in text.splitlines() if not line.startswith("#")]
    at = next((n for n, line in enumerate(lines) if line.startswith("mounts:")), -1)
    if at < 0:
        return "home"
    value = lines[at].removeprefix("mounts:").strip()
    if value.startswith("[") and value != "[]":
        return "" if value.endswith("]") else "unknown"
    if value not in ("", "[]", "null", "~"):
        return "unknown"
    after = next((line.strip() for line in lines[at + 1 :] if line.strip()), "")
    return "" if not value and after.startswith("- ") else "home"
