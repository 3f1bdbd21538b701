"""What bawn asks of dockerd itself, over its Unix socket: 1 to 3 ms a question, 20 by the client.

Docker Engine API v1.40 and later: https://docs.docker.com/reference/api/engine/
"""

import json
import os
import signal

from bawn import unix_http
from bawn.effects.docker_cgroup import of_process
from bawn.errors import EngineError, HostError
from bawn.typed import Any, NamedTuple

CONTAINER_ID = 64  # hex digits


class Event(NamedTuple):
    """Something that happened to the container."""

    action: str  # create, start, oom, die, destroy ...
    id: str
    exit: int  # of "die": the exit status; else -1


class Events:
    """The daemon's events about one container, from now on. A context manager with a `fileno`.

    Raises HostError when the daemon does not answer.
    """

    def __init__(self, socket: str, name: str) -> None:
        filters = unix_http.quote(json.dumps({"container": [name]}))
        self._connection, status, self._rest = unix_http.start(socket, "GET", f"/events?filters={filters}")
        if status != 200:
            self._connection.close()
            raise HostError(f"docker answered {status} to a question for events")
        self._connection.settimeout(0)
        self.open = True

    def __enter__(self) -> "Events":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def fileno(self) -> int:
        return self._connection.fileno()

    def read(self) -> list[Event]:
        """What has happened since the last call. `open` is False once the daemon has hung up."""
        try:
            while self.open:
                data = self._connection.recv(1 << 16)
                self.open = bool(data)
                self._rest += data
        except BlockingIOError:
            pass
        except OSError:
            self.open = False
        *lines, self._rest = self._rest.split(b"\n")
        return [_event(line) for line in lines if line.strip()]


def _event(line: bytes) -> Event:
    data = _parse(line)
    actor = data.get("Actor") or {}
    code = str((actor.get("Attributes") or {}).get("exitCode", ""))
    return Event(str(data.get("Action")), str(actor.get("ID", "")), int(code) if code.isdigit() else -1)


def inspect(socket: str, name: str) -> dict[str, Any] | None:
    """The container as `docker inspect` shows it; None where there is none. Raises HostError,
    EngineError."""
    return _get(socket, f"/containers/{name}/json")


def image(socket: str, name: str) -> dict[str, Any] | None:
    """The image as `docker image inspect` shows it; None where there is none."""
    return _get(socket, f"/images/{unix_http.quote(name)}/json")


def kill(socket: str, name: str, number: int, timeout: float = 10.0) -> bool:
    """Sends a signal to the container's first process, within `timeout` seconds; False where nothing
    runs. Raises HostError, EngineError."""
    answer = unix_http.ask(socket, "POST", f"/containers/{name}/kill?signal={int(number)}", timeout)
    if answer.status not in (204, 404, 409):
        raise EngineError(f"docker answered {answer.status} to kill: {_message(answer.body)}")
    return answer.status == 204


def remove(socket: str, name: str) -> None:
    """Ends and removes the container, and waits until it is gone. Raises HostError, EngineError."""
    for _ in range(50):
        answer = unix_http.ask(socket, "DELETE", f"/containers/{name}?force=1&v=1", timeout=30)
        if answer.status in (204, 404):
            return
        if answer.status != 409:  # "removal of container ... is already in progress"
            raise EngineError(f"docker answered {answer.status} to remove: {_message(answer.body)}")
        _pause(0.1)
    raise EngineError(f"docker does not remove {name}: {_message(answer.body)}", f"docker rm -f {name}")


def make_network(socket: str, name: str, bridge: str, label: str) -> str:
    """A bridge network of the name and label `name`, on the host's interface `bridge`; its gateway's address.

    Internal: docker gives it neither a route out of the machine nor masquerading. Raises HostError,
    EngineError.
    """
    wanted = {
        "Name": name,
        "CheckDuplicate": True,
        "Driver": "bridge",
        "Internal": True,
        "Labels": {label: name},
        "Options": {
            "com.docker.network.bridge.name": bridge,
            "com.docker.network.bridge.enable_icc": "false",
            "com.docker.network.bridge.enable_ip_masquerade": "false",
        },
    }
    answer = unix_http.ask(socket, "POST", "/networks/create", 30, json.dumps(wanted).encode())
    if answer.status != 201:
        raise EngineError(
            f"docker answered {answer.status} to a new network: {_message(answer.body)}",
            "docker network prune, or larger default-address-pools in daemon.json",
        )
    made = _get(socket, f"/networks/{name}") or {}
    for config in (made.get("IPAM") or {}).get("Config") or []:
        if gateway := str(config.get("Gateway", "")).partition("/")[0]:
            return gateway
    raise EngineError(f"docker's network {name} has no gateway", f"docker network rm {name}")


def remove_network(socket: str, name: str) -> None:
    """Removes the network; none is no fault. Raises HostError, EngineError."""
    answer = unix_http.ask(socket, "DELETE", f"/networks/{name}", 30)
    if answer.status not in (204, 404):
        raise EngineError(
            f"docker answered {answer.status} to remove the network {name}: {_message(answer.body)}",
            f"docker network rm {name}",
        )


def end_leftovers(container: str) -> None:
    """Ends runsc's processes of one container: a failed start leaves them behind, burning CPU, and
    a Sentry that hangs does not answer docker.

    Both kinds carry the full id in their command line: the sandbox as a word, the file server in
    the path of its bundle. Then the control groups that they held open can go.
    """
    groups: set[str] = set()
    for pid in leftovers(container):
        groups |= {path for _, path in of_process(pid) if container in path}
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # root's: only root can end them
            continue
    for path in groups:
        _remove_group(path)


def leftovers(container: str) -> list[int]:
    """runsc's processes of this container."""
    if len(container) != CONTAINER_ID:  # anything shorter could match another's
        return []
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and _is_runsc(entry, container)]


def _is_runsc(pid: str, container: str) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            line = file.read()
    except OSError:
        return False
    return line.startswith((b"runsc-sandbox\0", b"runsc-gofer\0")) and container.encode() in line


def _remove_group(path: str) -> None:
    for _ in range(20):
        try:
            os.rmdir(path)
        except (FileNotFoundError, PermissionError):
            return
        except OSError:  # a killed process lingers for a moment
            _pause(0.05)


def _get(socket: str, url: str) -> dict[str, Any] | None:
    answer = unix_http.ask(socket, "GET", url)
    if answer.status == 404:
        return None
    if answer.status != 200:
        raise EngineError(f"docker answered {answer.status} to {url}: {_message(answer.body)}")
    return _parse(answer.body)


def _parse(body: bytes) -> dict[str, Any]:
    try:
        data = json.loads(body)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise EngineError(f"docker's answer is not a JSON object: {body[:80]!r}")
    return data


def _message(body: bytes) -> str:
    try:
        return str(_parse(body).get("message", "no reason given"))
    except EngineError:
        return "no reason given"


def _pause(seconds: float) -> None:
    import time

    time.sleep(seconds)
