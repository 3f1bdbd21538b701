"""The control groups of a running container, as docker placed them: peak memory and limits hit.

They vanish with the container, so they are sampled while it lives; what happened after the last
sample is seen through docker's OOM flag only.
"""

_FILES = {
    # controller -> (peak, (event file, event key))
    "memory": ("memory.max_usage_in_bytes", ("memory.oom_control", "oom_kill")),
    "pids": ("", ("pids.events", "max")),
    "": ("memory.peak", ("memory.events", "oom_kill")),
}


class Gauge:
    """Follows one container by the process id of its first process on the host."""

    def __init__(self, pid: int) -> None:
        self._paths = _groups(pid)
        self._peak = -1
        self._events: dict[str, int] = {}
        self.sample()

    def sample(self) -> None:
        """Reads what can be read now."""
        for controller, path in self._paths.items():
            peak, (file, key) = _FILES[controller]
            if peak:
                self._peak = max(self._peak, _number(f"{path}/{peak}"))
            self._note(f"{path}/{file}", key, "pids" if controller == "pids" else "memory")
            if controller == "":
                self._note(f"{path}/pids.events", "max", "pids")

    def _note(self, path: str, key: str, limit: str) -> None:
        self._events[limit] = max(self._events.get(limit, 0), _field(path, key))

    def result(self) -> tuple[int, tuple[str, ...]]:
        """(peak memory in bytes or -1, the limits that were hit)."""
        return self._peak, tuple(name for name in ("memory", "pids") if self._events.get(name))


def _groups(pid: int) -> dict[str, str]:
    """Controller -> directory, of /proc/PID/cgroup ("" is v2)."""
    found: dict[str, str] = {}
    for line in _read(f"/proc/{pid}/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in ("memory", "pids"):
                found[controller] = f"/sys/fs/cgroup/{controllers}{path}"
            elif controller == "" and not found:
                found[""] = f"/sys/fs/cgroup{path}"
    if "memory" in found:
        found.pop("", None)
    return found


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _number(path: str) -> int:
    text = _read(path).strip()
    return int(text) if text.isdigit() else -1


def _field(path: str, key: str) -> int:
    for line in _read(path).splitlines():
        name, _, value = line.partition(" ")
        if name == key and value.isdigit():
            return int(value)
    return 0
