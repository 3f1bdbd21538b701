"""docker: the client, where its daemon is, whether it answers, and what its runtimes really are."""

import json
import os

from bawn.errors import HostError
from bawn.facts.model import DockerFact, DockerRuntime
from bawn.facts.runner import Runner
from bawn.typed import Any

DEADLINE = 10.0  # seconds for the daemon to answer
NO_RUNTIME = "sudo bawn setup docker --apply --restart"


def observe(run: Runner, wait: float = 0) -> DockerFact:
    """What is there; with `wait`, asks again for that many seconds while the daemon is down."""
    import time

    cli = find(os.environ.get("PATH", ""))
    where = endpoint()
    if not cli:
        return DockerFact("", where, "", problem="docker is not installed",
                          fix="sudo apt-get install docker.io")  # fmt: skip
    until = time.monotonic() + wait
    while True:
        fact = ask(run, cli, where)
        if not fact.problem or time.monotonic() >= until:
            return fact
        time.sleep(0.5)


def find(path: str) -> str:
    """The first docker on a PATH value; "" where there is none."""
    for directory in path.split(":"):
        if directory.startswith("/") and os.access(f"{directory}/docker", os.X_OK):
            return f"{directory}/docker"
    return ""


def endpoint() -> str:
    """DOCKER_HOST, else the current context's, else the default socket."""
    if os.environ.get("DOCKER_HOST"):
        return os.environ["DOCKER_HOST"]
    config = os.environ.get("DOCKER_CONFIG") or os.path.expanduser("~/.docker")
    name = os.environ.get("DOCKER_CONTEXT") or str(_json(f"{config}/config.json").get("currentContext", ""))
    if not name or name == "default":
        return "unix:///var/run/docker.sock"
    import hashlib

    digest = hashlib.sha256(name.encode()).hexdigest()
    meta = _json(f"{config}/contexts/meta/{digest}/meta.json")
    host = meta.get("Endpoints", {}).get("docker", {}).get("Host", "")
    return str(host) or f"context {name}"


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
        answer = run([cli, "info", "--format", "{{json .}}"], timeout=DEADLINE)
    except HostError as error:
        return DockerFact(cli, where, "", problem=error.message, fix=start_command(where))
    return parse_info(cli, where, answer.text, answer.complaint)


def parse_info(cli: str, where: str, text: str, complaint: str) -> DockerFact:
    """Pure: the answer of `docker info --format '{{json .}}'`."""
    try:
        info = json.loads(text)
    except ValueError:
        info = None
    if not isinstance(info, dict) or not info.get("ServerVersion"):
        errors = info.get("ServerErrors") if isinstance(info, dict) else None
        reason = str(errors[0]) if errors else complaint
        problem = f"the docker daemon at {where} does not answer: {reason}"
        return DockerFact(cli, where, "", problem=problem, fix=start_command(where))
    runtimes = tuple(
        DockerRuntime(name, str(spec.get("path") or ""), tuple(spec.get("runtimeArgs") or ()))
        for name, spec in sorted((info.get("Runtimes") or {}).items())
        if isinstance(spec, dict)
    )
    options = [str(o) for o in info.get("SecurityOptions") or ()]
    return DockerFact(
        cli, where, str(info["ServerVersion"]), runtimes,
        rootless=any("rootless" in o for o in options), remote=is_remote(where),
    )  # fmt: skip


def is_remote(where: str) -> bool:
    """Are the daemon's paths not ours? Another machine, or a virtual one on this."""
    if not where.startswith("unix://"):
        return True
    return any(vm in where for vm in (".colima", ".lima", ".docker/desktop", ".orbstack", ".rd/"))


def start_command(where: str) -> str:
    """The command that starts the daemon behind this endpoint."""
    table = ((".colima", "colima start"), (".lima", "limactl start"),
             (".docker/desktop", "systemctl --user start docker-desktop"))  # fmt: skip
    for part, command in table:
        if part in where:
            return command
    return "sudo systemctl start docker"
