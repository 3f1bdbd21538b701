"""What docker really made, compared with the plan, both ways. Pure.

An extra mount is as wrong as a missing one; any difference ends the run (corpus M20: engines add
mounts of their own, or silently ignore the configured ones).
"""

from bawn.plan.docker import LABEL, Files, docker_argv, effective_binds, tmpfs_word
from bawn.plan.model import Plan
from bawn.typed import Any, NamedTuple


class Difference(NamedTuple):
    """One thing that is not as planned."""

    what: str
    wanted: str
    got: str

    def describe(self) -> str:
        return f"{self.what}: planned {self.wanted}, docker made {self.got}"


def compare(plan: Plan, name: str, files: Files, made: dict[str, Any]) -> tuple[Difference, ...]:
    """`made` is one object of `docker inspect`. What is missing in it differs."""
    host, config = made.get("HostConfig") or {}, made.get("Config") or {}
    found = _values(_wanted(plan, name, files), {**_flatten(host, config)})
    found += _mounts(plan, files, made.get("Mounts") or [])
    found += _tmpfs(plan, host.get("Tmpfs") or {})
    found += _environment(plan, config.get("Env") or [])
    return tuple(found)


def _wanted(plan: Plan, name: str, files: Files) -> dict[str, Any]:
    memory = plan.limit("memory").value
    nofile = plan.limit("open_files").value
    command = docker_argv(plan, name, files, tty=False)
    return {
        "runtime": "runsc",
        "user": f"{plan.identity.uid}:{plan.identity.gid}",
        "cap-drop": ["ALL"],
        "cap-add": [],
        "privileged": False,
        "security-opt": ["no-new-privileges"],
        "read-only": True,
        "memory": memory,
        "memory-swap": memory,
        "cpus": plan.limit("cpus").value * 1_000_000,
        "pids-limit": plan.limit("pids").value,
        "ulimits": [{"Name": "nofile", "Hard": nofile, "Soft": nofile}],
        "ipc": "private",
        "pid": "",
        "userns": "",
        "uts": "",
        "network": "none",
        "workdir": plan.workdir,
        "devices": [],
        "device-requests": [],
        "ports": {},
        "publish-all": False,
        "links": [],
        "extra-hosts": [],
        "volumes-from": [],
        "label": name,
        "command": list(command[command.index(plan.image) + 1 :]),
    }


def _flatten(host: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    get = host.get
    command = [*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])]
    return {
        "runtime": get("Runtime"),
        "user": config.get("User"),
        "cap-drop": get("CapDrop"),
        "cap-add": get("CapAdd") or [],
        "privileged": get("Privileged"),
        "security-opt": get("SecurityOpt"),
        "read-only": get("ReadonlyRootfs"),
        "memory": get("Memory"),
        "memory-swap": get("MemorySwap"),
        "cpus": get("NanoCpus"),
        "pids-limit": get("PidsLimit"),
        "ulimits": get("Ulimits"),
        "ipc": get("IpcMode"),
        "pid": get("PidMode"),
        "userns": get("UsernsMode"),
        "uts": get("UTSMode"),
        "network": get("NetworkMode"),
        "workdir": config.get("WorkingDir"),
        "devices": get("Devices") or [],
        "device-requests": get("DeviceRequests") or [],
        "ports": get("PortBindings") or {},
        "publish-all": get("PublishAllPorts"),
        "links": get("Links") or [],
        "extra-hosts": get("ExtraHosts") or [],
        "volumes-from": get("VolumesFrom") or [],
        "label": (config.get("Labels") or {}).get(LABEL),
        "command": command,
    }


def _values(wanted: dict[str, Any], got: dict[str, Any]) -> list[Difference]:
    return [
        Difference(key, repr(value), repr(got.get(key)))
        for key, value in wanted.items()
        if got.get(key) != value
    ]


def _mounts(plan: Plan, files: Files, made: list[dict[str, Any]]) -> list[Difference]:
    wanted = {(b.source, b.target, b.mode == "rw") for b in effective_binds(plan, files)}
    got = set()
    for mount in made:
        if mount.get("Type") == "tmpfs":
            continue  # compared by their options
        got.add((mount.get("Source"), mount.get("Destination"), bool(mount.get("RW"))))
    missing = [Difference("mount", repr(m), "nothing") for m in sorted(wanted - got)]
    return missing + [Difference("mount", "nothing", repr(m)) for m in sorted(got - wanted, key=repr)]


def _tmpfs(plan: Plan, made: dict[str, str]) -> list[Difference]:
    wanted = dict(tmpfs_word(t).split(":", 1) for t in plan.tmpfs)
    return [
        Difference(f"tmpfs {target}", repr(wanted.get(target)), repr(made.get(target)))
        for target in sorted(wanted.keys() | made.keys())
        if wanted.get(target) != made.get(target)
    ]


def _environment(plan: Plan, made: list[str]) -> list[Difference]:
    """Every planned variable is there with its value. What the image adds, init drops (`-e`)."""
    got = dict(entry.partition("=")[::2] for entry in made)
    return [
        Difference(f"environment {v.name}", "as planned", "missing or another value")
        for v in plan.env
        if v.name not in got or (not v.secret and got[v.name] != v.value)
    ]
