"""The two questions bawn asks dockerd itself: inspect a container, and list bawn's own.

Over the daemon's Unix socket in 3 ms where there is one, else through the client (50 ms).
"""

import json
import os

from bawn.effects import process
from bawn.errors import EngineError, HostError
from bawn.facts.model import DockerFact
from bawn.plan.docker import LABEL
from bawn.typed import Any


def inspect(docker: DockerFact, name: str) -> dict[str, Any] | None:
    """The container as `docker inspect` shows it; None where there is none.

    Raises EngineError for an answer that cannot be read, HostError when none comes.
    """
    path = docker.endpoint.removeprefix("unix://")
    if path != docker.endpoint and os.path.exists(path):
        return _get(path, f"/containers/{name}/json")
    answer = process.run([docker.cli, "inspect", "--type", "container", name], timeout=10)
    if answer.code != 0:
        return None
    found = _parse(answer.out)
    return found[0] if isinstance(found, list) and found else None


def _get(path: str, url: str) -> dict[str, Any] | None:
    import http.client
    import socket

    class Local(http.client.HTTPConnection):
        def connect(self) -> None:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(10)
            self.sock.connect(path)

    connection = Local("docker")
    try:
        connection.request("GET", url)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise HostError(f"the docker daemon at {path} does not answer: {error}") from None
    finally:
        connection.close()
    if answer.status == 404:
        return None
    found = _parse(body)
    if answer.status != 200 or not isinstance(found, dict):
        raise EngineError(f"docker answered {answer.status} to {url}")
    return found


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        raise EngineError("docker's answer is not JSON") from None


def ours(docker: DockerFact) -> list[str]:
    """The names of every container that bawn made and that is still there."""
    answer = process.run(
        [docker.cli, "ps", "--all", "--filter", f"label={LABEL}", "--format", "{{.Names}}"],
        timeout=20,
    )
    if answer.code != 0:
        raise EngineError(f"docker ps failed: {answer.complaint}")
    return answer.text.split()


def remove(docker: DockerFact, name: str) -> None:
    """Ends and removes a container, and what a failed start of it left running."""
    found = inspect(docker, name)
    process.run([docker.cli, "rm", "--force", name], timeout=30)
    if found:
        end_leftovers(str(found.get("Id", "")))


def end_leftovers(container: str) -> None:
    """Ends runsc's processes of one container: a failed start leaves them behind, burning CPU."""
    import signal

    if len(container) != 64:  # docker's ids; anything shorter could match another's
        return
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[0].startswith(b"runsc") and container.encode() in words:
            try:
                os.kill(int(entry), signal.SIGKILL)
            except ProcessLookupError:
                continue
