"""What docker really made, compared with the plan, both ways. Pure.

An extra mount is as wrong as a missing one; any difference ends the run (corpus M20: engines add
mounts of their own, or silently ignore the configured ones). Of the host's side of a container
(`HostConfig`) every key is judged, those of a future docker too: what the plan does not set must be
empty.
"""

from bawn.plan.docker import LABEL, Files, command, effective_binds, tmpfs_word
from bawn.plan.model import Plan
from bawn.typed import Any, NamedTuple

# Keys of HostConfig whose value does not matter, and why.
_FREE = {
    "ConsoleSize": "of the client's terminal",
    "CgroupnsMode": "gVisor shows no cgroup of the host",
    "Mounts": "the request; the result is compared",
    "MaskedPaths": "of the host's /proc, which gVisor does not show",
    "ReadonlyPaths": "as MaskedPaths",
    "ShmSize": "the daemon's default; charged to the memory limit",
    "Isolation": "Windows",
}


class Difference(NamedTuple):
    """One thing that is not as planned."""

    what: str
    wanted: str
    got: str

    def describe(self) -> str:
        return f"{self.what}: planned {self.wanted}, docker made {self.got}"


def compare(
    plan: Plan, name: str, files: Files, made: dict[str, Any], image_env: tuple[str, ...], *, tty: bool
) -> tuple[Difference, ...]:
    """`made` is one object of `docker inspect`, `image_env` the image's own variables (NAME=VALUE),
    which PID 1 drops. What is missing in `made` differs."""
    host, config = made.get("HostConfig") or {}, made.get("Config") or {}
    found = _host(plan, files, host)
    found += _config(plan, name, files, config, tty)
    found += _mounts(plan, files, made.get("Mounts") or [])
    found += _tmpfs(plan, host.get("Tmpfs") or {})
    found += _environment(plan, config.get("Env") or [], image_env)
    networks = sorted((made.get("NetworkSettings") or {}).get("Networks") or {})
    if networks != [files.network]:
        found.append(Difference("networks", repr([files.network]), repr(networks)))
    return tuple(found)


def _host(plan: Plan, files: Files, host: dict[str, Any]) -> list[Difference]:
    memory = plan.limit("memory").value
    nofile = plan.limit("open_files").value
    wanted: dict[str, tuple[Any, ...]] = {  # the values that are as planned
        "Runtime": ("runsc",),
        "CapDrop": (["ALL"],),
        "SecurityOpt": (["no-new-privileges"],),
        "ReadonlyRootfs": (True,),
        "AutoRemove": (True,),
        "Memory": (memory,),
        "MemorySwap": (memory,),
        "MemorySwappiness": (None, -1),
        "NanoCpus": (plan.limit("cpus").value * 1_000_000,),
        "PidsLimit": (plan.limit("pids").value,),
        "Ulimits": ([{"Name": "nofile", "Hard": nofile, "Soft": nofile}],),
        "IpcMode": ("private",),
        "NetworkMode": (files.network,),
        "LogConfig": ({"Type": "none", "Config": {}},),
        "RestartPolicy": (
            {"Name": "no", "MaximumRetryCount": 0},
            {"Name": "", "MaximumRetryCount": 0},
        ),
    }
    found = [
        Difference(key, repr(values[0]), repr(host.get(key)))
        for key, values in wanted.items()
        if not any(_same(host.get(key), value) for value in values)
    ]
    known = wanted.keys() | _FREE.keys() | {"Tmpfs"}
    return found + [
        Difference(key, "nothing", repr(value))
        for key, value in sorted(host.items())
        if key not in known and value not in (None, False, 0, "", [], {})
    ]


def _config(plan: Plan, name: str, files: Files, config: dict[str, Any], tty: bool) -> list[Difference]:
    wanted = {
        "User": f"{plan.identity.uid}:{plan.identity.gid}",
        "WorkingDir": plan.workdir,
        "Image": plan.image,
        "Tty": tty,
        "label": name,
        "command": list(command(plan, files)),
        "Volumes": {},
    }
    got = {
        **config,
        "label": (config.get("Labels") or {}).get(LABEL),
        "command": [*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])],
        "Volumes": config.get("Volumes") or {},
    }
    return [
        Difference(key, repr(value), repr(got.get(key)))
        for key, value in wanted.items()
        if not _same(got.get(key), value)
    ]


def _same(a: Any, b: Any) -> bool:
    """Equal and of one type: 1 is not True."""
    return type(a) is type(b) and bool(a == b)


def _mounts(plan: Plan, files: Files, made: list[dict[str, Any]]) -> list[Difference]:
    wanted = {("bind", b.source, b.target, b.mode == "rw", "rprivate") for b in effective_binds(plan, files)}
    got = {
        tuple(mount.get(key) for key in ("Type", "Source", "Destination", "RW", "Propagation"))
        for mount in made
        if mount.get("Type") != "tmpfs"  # compared by their options
    }
    missing = [Difference("mount", repr(m), "nothing") for m in sorted(wanted - got)]
    return missing + [Difference("mount", "nothing", repr(m)) for m in sorted(got - wanted, key=repr)]


def _tmpfs(plan: Plan, made: dict[str, str]) -> list[Difference]:
    wanted = dict(tmpfs_word(t).split(":", 1) for t in plan.tmpfs)
    return [
        Difference(f"tmpfs {target}", repr(wanted.get(target)), repr(made.get(target)))
        for target in sorted(wanted.keys() | made.keys())
        if wanted.get(target) != made.get(target)
    ]


def _environment(plan: Plan, made: list[str], image_env: tuple[str, ...]) -> list[Difference]:
    """By name only: a value may be a secret."""
    got = dict(entry.partition("=")[::2] for entry in made)
    planned = {v.name for v in plan.env}
    wrong = [
        Difference(f"environment {v.name}", "as planned", "missing or another value")
        for v in plan.env
        if v.name not in got or (not v.secret and got[v.name] != v.value)
    ]
    extra = {entry.partition("=")[0] for entry in made if entry not in image_env} - planned
    return wrong + [Difference(f"environment {name}", "nothing", "a value") for name in sorted(extra)]
