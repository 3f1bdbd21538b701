"""The control groups of a running container, as docker placed them: peak memory and limits hit.

They vanish with the container, some 30 ms after its first process: they are read when that ends
(a pidfd says so), and at every other event. Sources: the kernel's cgroup-v1/memory.rst, pids.rst,
cgroup-v2.rst.
"""

import os

# What tells peak memory, and (file, field, limit) of what counts a refusal; v2 has one directory.
_PEAK = {"memory": "memory.max_usage_in_bytes", "": "memory.peak"}
_COUNTERS = {
    "memory": (("memory.oom_control", "oom_kill", "memory"),),
    "pids": (("pids.events", "max", "pids"),),
    "": (("memory.events", "oom_kill", "memory"), ("pids.events", "max", "pids")),
}
_LIMITS = ("memory", "pids")


class Gauge:
    """Follows one container by its first process on the host. `fd` is readable once that has ended;
    -1 where that cannot be told."""

    def __init__(self, pid: int) -> None:
        try:
            self.fd = os.pidfd_open(pid)
        except OSError:
            self.fd = -1
        self._paths = limiting(_read(f"/proc/{pid}/cgroup"), _read("/proc/self/mountinfo"))
        self._peak = -1
        self._hit: set[str] = set()
        self.sample()

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def sample(self) -> None:
        """Reads what can be read now."""
        for controller, path in self._paths:
            if controller in _PEAK:
                self._peak = max(self._peak, _number(f"{path}/{_PEAK[controller]}"))
            for file, field, limit in _COUNTERS[controller]:
                if _field(f"{path}/{file}", field):
                    self._hit.add(limit)

    def note(self, limit: str) -> None:
        """The daemon says that this limit was hit."""
        self._hit.add(limit)

    def result(self) -> tuple[int, tuple[str, ...]]:
        """(peak memory in bytes or -1, the limits that were hit)."""
        return self._peak, tuple(limit for limit in _LIMITS if limit in self._hit)


def limiting(groups: str, mountinfo: str) -> list[tuple[str, str]]:
    """(controller, directory) of those that bound memory and processes; the controller of v2 is "".

    v2 counts where no v1 controller does (a hybrid machine has v2 for systemd's own use).
    """
    found = directories(groups, mountinfo)
    one = [(c, path) for c, path in found if c in _LIMITS]
    return one or [(c, path) for c, path in found if not c]


def directories(groups: str, mountinfo: str) -> list[tuple[str, str]]:
    """(controller, directory) of every group of a process, from the texts of its /proc/PID/cgroup and
    of /proc/self/mountinfo."""
    points: dict[str, str] = {}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        kind = right.split(" ")
        if kind[0] in ("cgroup", "cgroup2"):
            names = kind[2].split(",") if kind[0] == "cgroup" else [""]
            points = {**dict.fromkeys(names, left.split(" ")[4]), **points}
    found = []
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        found += [(c, points[c] + path) for c in controllers.split(",") if c in points]
    return found


def of_process(pid: int) -> list[tuple[str, str]]:
    """`directories` of a running process."""
    return directories(_read(f"/proc/{pid}/cgroup"), _read("/proc/self/mountinfo"))


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
