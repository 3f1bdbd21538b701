"""The memory limit, looked at while the box runs: bawn ends a box that is over it.

Where no cgroup can hold it (rootless) bawn samples. A box's memory is one memfd of the Sentry
("runsc-memory"), its private file systems included. Its allocated blocks are what a cgroup would
charge. Between two samples the limit can be exceeded; the plan says so.

Where a cgroup holds it, the kernel kills one process of the group, most often the stub that runs the
box's code: the Sentry ends by that, but not always (seen once: it stayed, and the run with it).
"""

import os

from bawn.effects import cgroup
from bawn.plan.model import LimitPlan

INTERVAL = 0.1  # seconds; a sample costs about 0.1 ms
KERNELS_INTERVAL = 0.5  # seconds between two looks at what the kernel has killed


class Sampler:
    """Follows the box below process `child`. `peak` is bytes, -1 while nothing was seen."""

    def __init__(self, child: int, limit: LimitPlan, groups: cgroup.Cgroups) -> None:
        self.interval = INTERVAL if limit.by == "bawn" else KERNELS_INTERVAL
        self.peak = -1
        self._limit = limit
        self._groups = groups
        self._child = child
        self._memfd = ""

    def over(self) -> bool:
        """Takes a sample; True when the limit is exceeded."""
        if self._limit.by != "bawn":
            return cgroup.usage(self._groups).oom_kills > 0
        self._memfd = self._memfd or _find(self._child)
        if not self._memfd:
            return False
        try:
            self.peak = max(self.peak, os.stat(self._memfd).st_blocks * 512)
        except OSError:
            self._memfd = ""
        return self.peak > self._limit.value


def _find(pid: int) -> str:
    """The /proc path of the Sentry's memory, searched among the descendants of `pid`."""
    for process in _descendants(pid):
        directory = f"/proc/{process}/fd"
        try:
            for fd in os.listdir(directory):
                if os.readlink(f"{directory}/{fd}").startswith("/memfd:runsc-memory"):
                    return f"{directory}/{fd}"
        except OSError:
            continue
    return ""


def _descendants(pid: int) -> list[int]:
    found, queue = [], [pid]
    while queue:
        current = queue.pop()
        try:
            with open(f"/proc/{current}/task/{current}/children") as file:
                children = [int(word) for word in file.read().split()]
            for thread in os.listdir(f"/proc/{current}/task"):
                if thread != str(current):
                    with open(f"/proc/{current}/task/{thread}/children") as file:
                        children += [int(word) for word in file.read().split()]
        except OSError:
            continue
        found += children
        queue += children
    return found
