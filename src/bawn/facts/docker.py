"""docker: the client, where its daemon is, whether it answers, and what its runtimes really are.

A daemon behind a Unix socket is asked over it (7 ms); others, which no run can use, through the client.
"""

import json
import os
from collections.abc import Callable

from bawn import unix_http
from bawn.errors import HostError
from bawn.facts import programs
from bawn.facts.model import DockerFact, DockerRuntime
from bawn.facts.runner import Runner
from bawn.typed import Any

DEADLINE = 10.0  # seconds for the daemon to answer
DEFAULT = "unix:///var/run/docker.sock"
# (a part of the endpoint, the virtual machine it tells of, the command that starts it)
_MACHINES = (
    ("/.colima/", "colima", "colima start"),
    ("/.config/colima/", "colima", "colima start"),
    ("/.lima/", "lima", "limactl start"),
    ("/.docker/desktop/", "Docker Desktop", "systemctl --user start docker-desktop"),
    ("/.docker/run/", "Docker Desktop", "systemctl --user start docker-desktop"),
    ("/.orbstack/", "OrbStack", "orb start"),
    ("/.rd/", "Rancher Desktop", "rdctl start"),
)
_SCRIPT = 64 << 10  # bytes of a runtime that is a script


def observe(run: Runner, wait: float = 0, tell: Callable[[str], None] | None = None) -> DockerFact:
    """What is there; with `wait`, asks again for that many seconds while the daemon is down, and says
    so once by `tell`. A socket that this user may not use is not waited for."""
    import time

    cli = programs.find("docker", os.environ.get("PATH", ""))
    where = endpoint(os.environ, os.path.expanduser("~"))
    if not cli:
        return DockerFact(
            "", where, "", problem="docker is not installed", fix="sudo apt-get install docker.io"
        )
    until = time.monotonic() + wait
    while True:
        fact = ask(run, cli, where)
        if not fact.problem or time.monotonic() >= until or "ermission denied" in fact.problem:
            return fact
        if tell:
            tell(f"{fact.problem}; waiting for it (start it: {fact.fix})")
            tell = None
        time.sleep(0.2)


def endpoint(environ: "os._Environ[str] | dict[str, str]", home: str) -> str:
    """DOCKER_HOST, else the context's of DOCKER_CONTEXT or the configuration, else the default socket.

    The order is the client's own. "context NAME" where that context cannot be read.
    """
    if environ.get("DOCKER_HOST"):
        return environ["DOCKER_HOST"]
    config = environ.get("DOCKER_CONFIG") or f"{home}/.docker"
    name = environ.get("DOCKER_CONTEXT") or str(_json(f"{config}/config.json").get("currentContext") or "")
    if not name or name == "default":
        return DEFAULT
    import hashlib

    digest = hashlib.sha256(name.encode()).hexdigest()
    points = _json(f"{config}/contexts/meta/{digest}/meta.json").get("Endpoints")
    docker = points.get("docker") if isinstance(points, dict) else None
    return str((docker or {}).get("Host") or f"context {name}") if docker else f"context {name}"


def _json(path: str) -> dict[str, Any]:
    try:
        with open(path) as file:
            data = json.load(file)
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def ask(run: Runner, cli: str, where: str) -> DockerFact:
    """One question to the daemon."""
    try:
        if where.startswith("unix://"):
            answer = unix_http.ask(where.removeprefix("unix://"), "GET", "/info", DEADLINE)
            text, said = answer.body.decode(errors="replace"), f"it said {answer.status}"
            return parse_info(cli, where, text, said, os.uname().release)
        told = run([cli, "info", "--format", "{{json .}}"], timeout=DEADLINE)
    except HostError as error:
        return _down(cli, where, error.message)
    return parse_info(cli, where, told.text, told.complaint, os.uname().release)


def parse_info(cli: str, where: str, text: str, complaint: str, kernel: str = "") -> DockerFact:
    """The daemon's /info, or the answer of `docker info --format '{{json .}}'`. A daemon on another
    kernel than `kernel` (this machine's) is in a virtual machine, whatever its socket is called."""
    try:
        info = json.loads(text)
    except ValueError:
        info = None
    if not isinstance(info, dict) or not info.get("ServerVersion"):
        errors = info.get("ServerErrors") if isinstance(info, dict) else None
        return _down(cli, where, str(errors[0]) if errors else complaint)
    runtimes = info.get("Runtimes") or {}
    options = [str(o) for o in info.get("SecurityOptions") or ()]
    elsewhere = bool(kernel) and info.get("KernelVersion") != kernel
    return DockerFact(
        cli, where, str(info["ServerVersion"]),
        tuple(runtime(name, spec) for name, spec in sorted(runtimes.items()) if isinstance(spec, dict)),
        rootless=any("name=rootless" in o for o in options),
        remote=elsewhere or is_remote(where),
        userns=any("name=userns" in o for o in options),
        cgroup=f"{info.get('CgroupDriver') or '?'} v{info.get('CgroupVersion') or '?'}",
        lacks=tuple(what for key, what in _LIMITS if info.get(key) is False),
    )  # fmt: skip


_LIMITS = (("MemoryLimit", "memory"), ("CpuCfsQuota", "cpus"), ("PidsLimit", "pids"))


def runtime(name: str, spec: dict[str, Any]) -> DockerRuntime:
    """One entry of the daemon's runtimes; one that is a script is read, since it may hide arguments."""
    path = str(spec.get("path") or "")
    kind = str(spec.get("runtimeType") or "")
    args = tuple(str(arg) for arg in spec.get("runtimeArgs") or ())
    real = os.path.realpath(path) if path.startswith("/") else path
    return DockerRuntime(name, path, args, real, _script(real), kind)


def _script(path: str) -> str:
    try:
        with open(path, "rb") as file:
            if file.read(2) == b"#!":
                return file.read(_SCRIPT).decode(errors="replace")
    except OSError:
        pass
    return ""


def is_remote(where: str) -> bool:
    """Are the daemon's paths not ours? Another machine, or a virtual one on this."""
    return not where.startswith("unix://") or machine(where) != ""


def machine(where: str) -> str:
    """The virtual machine that an endpoint tells of, by itself or as a link; "" for none."""
    real = os.path.realpath(where.removeprefix("unix://")) if where.startswith("unix://") else where
    return next((name for part, name, _ in _MACHINES if part in where or part in real), "")


def _down(cli: str, where: str, reason: str) -> DockerFact:
    problem = f"the docker daemon at {where} does not answer: {reason}"
    fix = start_command(where)
    if "ermission denied" in reason:
        fix = "use sudo; or, for somebody who may be root: sudo usermod -aG docker $USER, and log in again"
    return DockerFact(cli, where, "", problem=problem, fix=fix, remote=is_remote(where))


def start_command(where: str) -> str:
    """The command that starts the daemon behind this endpoint."""
    virtual = machine(where)
    for _, name, command in _MACHINES:
        if name == virtual:
            return command
    if not where.startswith("unix://"):
        return f"start the daemon at {where}, or unset DOCKER_HOST and DOCKER_CONTEXT"
    if os.path.isdir("/run/systemd/system"):
        return "sudo systemctl start docker"
    return "sudo service docker start"
