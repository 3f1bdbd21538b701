"""AoA's target JSON (seed 001): an environment's config becomes a target, a target a docker argv. Pure.

Shape and words are AoA's (`resolveGvisorSandboxTarget`, `buildDockerRunArgs`), its laxness is not: there
a number where a string was meant silently drops a limit, and an unknown network becomes bridge. Here
each is an error. On shared infrastructure (`multi_tenant`, the default) a tenant's config weakens
nothing: every value of the hardened profile is forced.
"""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence

from bawn.errors import PolicyError
from bawn.typed import Any

NETWORKS = ("none", "bridge", "host")
PROVIDERS = ("gvisor", "sandbox-docker", "docker", "local-docker")
TMPFS = ("/tmp:rw,noexec,nosuid,size=64m", "/home/agent:rw,nosuid,size=256m")
HARDENED: dict[str, Any] = {
    "user": "1000:1000",
    "capDropAll": True,
    "noNewPrivileges": True,
    "seccompProfile": None,
    "readOnlyRootfs": True,
    "tmpfs": list(TMPFS),
    "memory": "2g",
    "cpus": "2",
    "pidsLimit": 512,
    "ipcPrivate": True,
}
HOST_GATEWAY = "host.docker.internal:host-gateway"


def _matches(pattern: str) -> Callable[[Any], bool]:
    compiled = re.compile(pattern)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_tmpfs(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(t, str) and t.startswith("/") for t in value)


def _is_profile(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.startswith("/"))


# key of `isolation` -> (what it must be, in words)
ISOLATION: dict[str, tuple[Callable[[Any], bool], str]] = {
    "user": (_matches(r"\d+(:\d+)?"), 'a string such as "1000:1000"'),
    "capDropAll": (_is_bool, "true or false"),
    "noNewPrivileges": (_is_bool, "true or false"),
    "seccompProfile": (_is_profile, "an absolute path, or null"),
    "readOnlyRootfs": (_is_bool, "true or false"),
    "tmpfs": (_is_tmpfs, "a list of strings that start with /"),
    "memory": (_matches(r"[1-9]\d*[bkmg]?"), 'a string such as "2g"'),
    "cpus": (_matches(r"(?!0*(\.0*)?$)\d+(\.\d+)?"), 'a string such as "2"'),  # to docker 0 is "all"
    "pidsLimit": (_is_count, "a whole number above 0"),
    "ulimitNofile": (_is_count, "a whole number above 0"),
    "ipcPrivate": (_is_bool, "true or false"),
}


def resolve_docker_sandbox_config(config: Mapping[str, Any], *, multi_tenant: bool = True) -> dict[str, Any]:
    """The config of a docker environment, resolved as AoA does it for a lease.

    A gVisor one gets its target's values; so does every other where tenants share the machine. Raises
    PolicyError.
    """
    provider = _provider(config)
    if provider == "gvisor" or multi_tenant:
        target = resolve_gvisor_sandbox_target(config, multi_tenant)
        return {**config, **target, "provider": "sandbox-docker"}
    if not _text(config, "image"):
        raise PolicyError("Sandbox Docker environments require config.image.")
    return {**config, "provider": "sandbox-docker", "image": _text(config, "image")}


def resolve_gvisor_sandbox_target(config: Mapping[str, Any], multi_tenant: bool = True) -> dict[str, Any]:
    """The hardened target of a gVisor environment. `multi_tenant` forces every value of it; else what
    the config says is kept, and what it does not say is hardened.

    Raises PolicyError, in AoA's words where AoA has some.
    """
    _provider(config)
    image = _text(config, "image")
    if not image:
        raise PolicyError("gVisor environments require config.image.")
    if image.startswith("-"):
        raise _wrong("image", image, "the name of an image, which is no option of docker")
    network = _choice(config, "network", NETWORKS, "none")
    _choice(config, "runtime", ("runsc",), "runsc")
    gateway = config.get("allowHostGateway", False)
    if not isinstance(gateway, bool):
        raise _wrong("allowHostGateway", gateway, "true or false")
    asked = {key: value for key, value in _isolation(config).items() if value is not None}
    isolation = dict(HARDENED) if multi_tenant else {**HARDENED, **asked}
    isolation["tmpfs"] = list(isolation["tmpfs"] or TMPFS)
    return {
        "type": "sandbox-docker",
        "image": image,
        "workdir": _text(config, "workdir") or "/workspace",
        "network": "none" if multi_tenant else network,
        "runtime": "runsc",
        "allowHostGateway": False if multi_tenant else gateway,
        "isolation": isolation,
    }


def build_docker_run_args(
    target: Mapping[str, Any],
    *,
    local_cwd: str,
    command: str,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    secrets: Sequence[str] = (),
    stdin: str | None = None,
    host_gateway_active: bool = False,
) -> list[str]:
    """The words after `docker`. A target that opts in to nothing gives AoA's legacy argv, word for word.

    `secrets` are variables passed by name alone, valued in docker's own environment. The host gateway is
    added only when the callback bridge runs (`host_gateway_active`) and the target opts in.

    Raises PolicyError for what is not a docker target, or has a value of a wrong type.
    """
    if target.get("type") != "sandbox-docker":
        raise _wrong("type", target.get("type"), '"sandbox-docker"')
    image = _text(target, "image")
    if not image:
        raise PolicyError('executionTarget.image is required for target "sandbox-docker"')
    if image.startswith("-"):
        raise _wrong("image", image, "the name of an image, which is no option of docker")
    workdir = _text(target, "workdir") or "/workspace"
    words = ["run"]
    words += ["--rm"] if target.get("remove") is not False else []
    words += ["--interactive"] if stdin is not None else []
    if target.get("runtime") is not None:
        words += ["--runtime", _choice(target, "runtime", ("runsc",), "runsc")]
    words += _isolation_words(_isolation(target))
    words += ["--workdir", workdir, "--mount", _mount(local_cwd, workdir)]
    words += ["--network", _choice(target, "network", NETWORKS, "bridge")]
    if host_gateway_active and target.get("allowHostGateway") is True:
        words += ["--add-host", HOST_GATEWAY]
    for name, value in (env or {}).items():
        words += ["--env", name if name in secrets else f"{name}={value}"]
    words += [word for name in secrets if name not in (env or {}) for word in ("--env", name)]
    return [*words, image, command, *args]


def _isolation_words(isolation: Mapping[str, Any]) -> list[str]:
    get = isolation.get
    words = ["--user", get("user")] if get("user") else []
    words += ["--cap-drop", "ALL"] if get("capDropAll") else []
    words += ["--security-opt", "no-new-privileges"] if get("noNewPrivileges") else []
    words += ["--security-opt", f"seccomp={get('seccompProfile')}"] if get("seccompProfile") else []
    words += ["--read-only"] if get("readOnlyRootfs") else []
    words += [word for tmpfs in get("tmpfs") or () for word in ("--tmpfs", tmpfs)]
    words += ["--memory", get("memory"), "--memory-swap", get("memory")] if get("memory") else []
    words += ["--cpus", get("cpus")] if get("cpus") else []
    words += ["--pids-limit", str(get("pidsLimit"))] if get("pidsLimit") else []
    nofile = get("ulimitNofile")
    words += ["--ulimit", f"nofile={nofile}:{nofile}"] if nofile else []
    words += ["--ipc", "private"] if get("ipcPrivate") else []
    return [str(word) for word in words]


def _isolation(source: Mapping[str, Any]) -> Mapping[str, Any]:
    isolation = source.get("isolation")
    if isolation is None:
        return {}
    if not isinstance(isolation, Mapping):
        raise _wrong("isolation", isolation, "an object")
    for key, value in isolation.items():
        if key not in ISOLATION:
            raise PolicyError(f"isolation.{key} is unknown; allowed: {', '.join(ISOLATION)}")
        holds, allowed = ISOLATION[key]
        if value is not None and not holds(value):
            raise _wrong(f"isolation.{key}", value, allowed)
    return isolation


def _provider(config: Mapping[str, Any]) -> str:
    provider = config.get("provider")
    if provider is None or provider == "":
        return "sandbox-docker"
    if provider not in PROVIDERS:
        raise PolicyError(f'Unsupported sandbox provider "{provider}"')
    return str(provider)


def _text(source: Mapping[str, Any], key: str) -> str:
    """A string, trimmed; "" where it is absent or blank."""
    value = source.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong(key, value, "a string")
    return value.strip()


def _choice(source: Mapping[str, Any], key: str, allowed: tuple[str, ...], default: str) -> str:
    value = source.get(key)
    if value is None:
        return default
    if value not in allowed or not isinstance(value, str):
        raise _wrong(key, value, " or ".join(f'"{item}"' for item in allowed))
    return value


def _wrong(key: str, value: Any, allowed: str) -> PolicyError:
    return PolicyError(f"{key} is {value!r}; allowed: {allowed}")


def _mount(source: str, target: str) -> str:
    """docker reads --mount as a line of CSV. Raises PolicyError for a path that it cannot hold."""
    for path in (source, target):
        if not path.startswith("/") or any(c in path for c in "\n\r\0"):
            raise PolicyError(f"cannot mount {path!r}: an absolute path without a line end is needed")
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(["type=bind", f"source={source}", f"target={target}"])
    return line.getvalue()
