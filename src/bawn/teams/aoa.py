"""AoA's sandbox targets: from an environment's config to a target, and from a target to `docker run`.

The JSON is that of AoA's `sandbox-docker` target (seed 001; packages/adapter-utils of AoA). Two things
are stricter than there: a value of the wrong type is an error, where AoA takes its default or drops the
flag (a memory limit of 2, the number, is no limit), and so is an unknown key, network or runtime. All
problems are reported together.
"""

from collections.abc import Callable, Mapping, Sequence

from bawn.errors import PolicyError
from bawn.typed import Any, NamedTuple

NETWORKS = ("none", "bridge", "host")
RUNTIMES = ("runsc", "runc")
PROVIDER = "gvisor"
WORKDIR = "/workspace"
HOST_GATEWAY = "host.docker.internal:host-gateway"
# Seed 001's hardened set. docker mounts both without exec unless told otherwise.
HARDENED: dict[str, Any] = {
    "user": "1000:1000",
    "capDropAll": True,
    "noNewPrivileges": True,
    "seccompProfile": None,
    "readOnlyRootfs": True,
    "tmpfs": ["/tmp:rw,noexec,nosuid,size=64m", "/home/agent:rw,nosuid,size=256m"],
    "memory": "2g",
    "cpus": "2",
    "pidsLimit": 512,
    "ipcPrivate": True,
}
# Variables that docker's client itself obeys: a secret of that name would steer it.
_STEERING = ("DOCKER_", "LD_", "GODEBUG", "PATH", "HOME")


class _Kind(NamedTuple):
    """What a value may be."""

    wanted: str
    ok: Callable[[Any], bool]


_TEXT = _Kind("a text that is not blank", lambda v: isinstance(v, str) and bool(v.strip()))
_FLAG = _Kind("true or false", lambda v: isinstance(v, bool))
_COUNT = _Kind("a whole number above 0", lambda v: type(v) is int and v > 0)
_TEXTS = _Kind("a list of texts", lambda v: isinstance(v, list) and all(map(_TEXT.ok, v)))
_VALUES = _Kind(
    "an object of texts", lambda v: isinstance(v, dict) and all(isinstance(x, str) for x in v.values())
)
_OBJECT = _Kind("an object", lambda v: isinstance(v, dict))


def _one_of(*allowed: str) -> _Kind:
    return _Kind(f"one of {', '.join(allowed)}", lambda v: v in allowed)


_ISOLATION = {
    "user": _TEXT, "capDropAll": _FLAG, "noNewPrivileges": _FLAG, "seccompProfile": _TEXT,
    "readOnlyRootfs": _FLAG, "tmpfs": _TEXTS, "memory": _TEXT, "cpus": _TEXT, "pidsLimit": _COUNT,
    "ulimitNofile": _COUNT, "ipcPrivate": _FLAG,
}  # fmt: skip
_COMMON = {
    "image": _TEXT, "workdir": _TEXT, "shell": _one_of("sh", "bash"), "installCommand": _TEXT,
    "network": _one_of(*NETWORKS), "allowHostGateway": _FLAG, "isolation": _OBJECT,
}  # fmt: skip
_CONFIG = {**_COMMON, "provider": _TEXT, "runtime": _one_of("runsc")}
_TARGET = {
    **_COMMON, "type": _TEXT, "runtime": _one_of(*RUNTIMES), "remove": _FLAG, "env": _VALUES,
}  # fmt: skip


def resolve_gvisor_sandbox_target(
    config: Mapping[str, Any], multi_tenant: bool = True, filtered_bridge: bool = False
) -> dict[str, Any]:
    """The hardened `sandbox-docker` target of a gVisor environment.

    On shared machines (`multi_tenant`, the default) the config is the tenant's: nothing in it can
    weaken the box, whatever it asks for. Its wish for the bridge counts only where the caller vouches
    that this machine's bridge is filtered (`filtered_bridge`). On one's own machine it is honoured.

    Raises PolicyError.
    """
    provider = config.get("provider")
    if provider is not None and provider != PROVIDER:
        raise PolicyError(f'Unsupported sandbox provider "{provider}"')
    if not _TEXT.ok(config.get("image")):
        raise PolicyError("gVisor environments require config.image.")
    asked = config.get("isolation") or {}
    _check({"config": (config, _CONFIG), "config.isolation": (asked, _ISOLATION)})
    network = config.get("network") or "none"
    if multi_tenant:
        network = "bridge" if network == "bridge" and filtered_bridge else "none"
    given = {} if multi_tenant else {key: value for key, value in asked.items() if value not in (None, [])}
    return {
        "type": "sandbox-docker",
        "image": config["image"].strip(),
        "workdir": (config.get("workdir") or WORKDIR).strip(),
        "network": network,
        "runtime": "runsc",
        "allowHostGateway": not multi_tenant and config.get("allowHostGateway") is True,
        "isolation": {**HARDENED, "tmpfs": list(HARDENED["tmpfs"]), **given},
    }


def build_docker_run_args(
    target: Mapping[str, Any],
    *,
    local_cwd: str,
    command: str,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    secrets: frozenset[str] = frozenset(),
    stdin: bool = False,
    host_gateway_active: bool = False,
) -> list[str]:
    """The words after `docker` for one run of a target, in AoA's order; what is not opted in is not
    there. `host_gateway_active`: the callback bridge runs; the host's address is added only then, and
    only where the target allows it (AoA once added it always).

    The names of `env` that are in `secrets` stand without their value: the caller puts those into
    docker's own environment. Raises PolicyError.
    """
    kind = target.get("type")
    if kind != "sandbox-docker":
        raise PolicyError(f'Unsupported execution target "{kind}"')
    if not _TEXT.ok(target.get("image")):
        raise PolicyError('executionTarget.image is required for target "sandbox-docker"')
    isolation = target.get("isolation")
    values = {"env": dict(env or {})}
    _check({
        "executionTarget": (target, _TARGET),
        "executionTarget.isolation": (isolation or {}, _ISOLATION),
        "run": (values, {"env": _VALUES}),
    })  # fmt: skip
    workdir = target.get("workdir") or WORKDIR
    words = ["run", *([] if target.get("remove") is False else ["--rm"])]
    words += ["--interactive"] if stdin else []
    words += ["--runtime", "runsc"] if target.get("runtime") == "runsc" else []
    words += _isolation_words(isolation or {})
    words += ["--workdir", workdir, "--mount", _mount(local_cwd, workdir)]
    words += ["--network", target.get("network") or "bridge"]  # AoA's default where nothing is said
    if host_gateway_active and target.get("allowHostGateway"):
        words += ["--add-host", HOST_GATEWAY]
    for name, value in values["env"].items():
        words += ["--env", _variable(name, value, name in secrets)]
    image = target["image"].strip()
    if image.startswith("-"):
        raise PolicyError(f"executionTarget.image is {image!r}: an option of docker, not an image")
    return [*words, image, command, *args]


def _isolation_words(isolation: Mapping[str, Any]) -> list[str]:
    get: Callable[[str], Any] = isolation.get
    words: list[str] = ["--user", get("user")] if get("user") else []
    words += ["--cap-drop", "ALL"] if get("capDropAll") else []
    words += ["--security-opt", "no-new-privileges"] if get("noNewPrivileges") else []
    words += ["--security-opt", f"seccomp={get('seccompProfile')}"] if get("seccompProfile") else []
    words += ["--read-only"] if get("readOnlyRootfs") else []
    words += [word for entry in get("tmpfs") or () for word in ("--tmpfs", entry)]
    words += ["--memory", get("memory"), "--memory-swap", get("memory")] if get("memory") else []
    words += ["--cpus", get("cpus")] if get("cpus") else []
    words += ["--pids-limit", str(get("pidsLimit"))] if get("pidsLimit") else []
    files = get("ulimitNofile")
    words += ["--ulimit", f"nofile={files}:{files}"] if files else []
    return words + (["--ipc", "private"] if get("ipcPrivate") else [])


def warnings(target: Mapping[str, Any]) -> tuple[str, ...]:
    """What is passed on and does not do what it seems to say."""
    isolation = target.get("isolation") or {}
    found = []
    if isolation.get("seccompProfile") and target.get("runtime") == "runsc":
        found.append("seccompProfile is passed on, but runsc ignores it: gVisor has a filter of its own")
    for entry in isolation.get("tmpfs") or ():
        path, _, options = entry.partition(":")
        if not {"exec", "noexec"} & set(options.split(",")):
            found.append(f"docker mounts {path} without exec: programs and npm scripts there do not start")
    return tuple(found)


def _mount(source: str, target: str) -> str:
    """A line of CSV, as Go's encoding/csv reads it: the plain text where nothing needs a quote."""
    for path in (source, target):
        if not path.startswith("/") or any(char in path for char in "\n\r\\"):
            raise PolicyError(f"docker cannot mount {path!r}: wanted an absolute path without \\ or line end")
    fields = ("type=bind", f"source={source}", f"target={target}")
    return ",".join('"' + f.replace('"', '""') + '"' if "," in f or '"' in f else f for f in fields)


def _variable(name: str, value: str, secret: bool) -> str:
    if not name or "=" in name or "\0" in name + value:
        raise PolicyError(f"not a name for an environment variable: {name!r}")
    if secret and name.upper().startswith(_STEERING):
        raise PolicyError(f"a secret cannot be named {name}: docker's client reads that variable itself")
    return name if secret else f"{name}={value}"


def _check(parts: dict[str, tuple[Any, Mapping[str, _Kind]]]) -> None:
    """Every key known, every value of its kind; null is "not said". Raises PolicyError with all."""
    problems = []
    for place, (values, kinds) in parts.items():
        if not isinstance(values, Mapping):
            continue  # said of its parent
        for key, value in values.items():
            kind = kinds.get(key)
            if kind is None:
                problems.append(f"{place}.{key}: no such key; allowed: {', '.join(kinds)}")
            elif value is not None and not kind.ok(value):
                problems.append(f"{place}.{key}: got {value!r}; wanted {kind.wanted}")
    if problems:
        raise PolicyError(f"AoA's {next(iter(parts))} is wrong", tuple(problems))
