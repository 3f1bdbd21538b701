"""Control groups of a run: made before it, read after it, removed with it. v1 and v2.

runsc is started inside them and told --ignore-cgroups, so they bound the Sentry, its threads and
the box's memory (a memfd of the Sentry) together. Sources: the kernel's
Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst.
"""

import os

from bawn.effects.names import cgroup_of
from bawn.errors import HostError
from bawn.plan.model import Plan
from bawn.typed import NamedTuple

PERIOD = 100_000  # microseconds; the kernel's default CPU bandwidth period
# The Sentry's own threads and one stub process for each process of the box count too (70 at idle
# were measured); the box's own limit is RLIMIT_NPROC, which gVisor enforces, and this is behind it.
PIDS_FACTOR, PIDS_EXTRA = 2, 256


class Usage(NamedTuple):
    """What the groups say after a run."""

    peak_memory: int  # bytes; -1 where the kernel does not tell
    oom_kills: int
    pids_refused: int


class Cgroups(NamedTuple):
    """The groups of one run: (controller, directory). v2 has one directory for all."""

    version: int
    directories: tuple[tuple[str, str], ...]

    @property
    def procs(self) -> list[str]:
        """The `cgroup.procs` files to join, each once."""
        return sorted({f"{directory}/cgroup.procs" for _, directory in self.directories})


def make(plan: Plan, version: int, roots: tuple[tuple[str, str], ...], run_id: str) -> Cgroups:
    """Makes and limits the groups. Raises HostError, with nothing left behind."""
    wanted = {limit.name for limit in plan.limits if limit.by == "cgroup"}
    controllers = {"memory": "memory", "cpus": "cpu", "pids": "pids"}
    groups = Cgroups(
        version,
        tuple(
            (controller, cgroup_of(root, run_id))
            for controller, root in roots
            if any(controllers.get(name) == controller for name in wanted)
        ),
    )
    try:
        if version == 2 and groups.directories:
            _pass_on(groups.directories[0][1], groups)
        for controller, directory in groups.directories:
            os.makedirs(directory, exist_ok=True)
            for name, value in _settings(plan, version)[controller]:
                with open(f"{directory}/{name}", "w") as file:
                    file.write(value)
    except OSError as error:
        remove(groups)
        raise HostError(f"cannot set a limit in {error.filename}: {error.strerror}", "bawn doctor") from None
    return groups


def _pass_on(directory: str, groups: Cgroups) -> None:
    """v2: a group has the files of a controller only where every group above it passes that on.

    The one that was delegated does already; the top of the tree only what somebody has asked it for.
    """
    parent = os.path.dirname(directory)
    os.makedirs(parent, exist_ok=True)
    for above in (os.path.dirname(parent), parent):
        path = f"{above}/cgroup.subtree_control"
        with open(path) as file:
            passed = file.read().split()
        if missing := [f"+{controller}" for controller, _ in groups.directories if controller not in passed]:
            with open(path, "w") as file:
                file.write(" ".join(missing))


def _settings(plan: Plan, version: int) -> dict[str, list[tuple[str, str]]]:
    memory = str(plan.limit("memory").value)
    quota = str(plan.limit("cpus").value * PERIOD // 1000)
    pids = str(plan.limit("pids").value * PIDS_FACTOR + PIDS_EXTRA)
    if version == 2:
        return {
            "memory": [("memory.max", memory), ("memory.swap.max", "0")],
            "cpu": [("cpu.max", f"{quota} {PERIOD}")],
            "pids": [("pids.max", pids)],
        }
    return {
        # The order matters: memory+swap may not be below memory.
        "memory": [("memory.limit_in_bytes", memory), *_swap_off(plan, memory)],
        "cpu": [("cpu.cfs_period_us", str(PERIOD)), ("cpu.cfs_quota_us", quota)],
        "pids": [("pids.max", pids)],
    }


def _swap_off(plan: Plan, memory: str) -> list[tuple[str, str]]:
    """v1 can bound swap only with swap accounting; `plan.limit("memory").note` says which."""
    if "swap" in plan.limit("memory").note:
        return []
    return [("memory.memsw.limit_in_bytes", memory)]


def usage(groups: Cgroups) -> Usage:
    """Reads peak and events. What a kernel does not tell is -1 or 0."""
    where = dict(groups.directories)
    memory, pids = where.get("memory", ""), where.get("pids", "")
    if groups.version == 2:
        return Usage(
            _number(f"{memory}/memory.peak"),
            _field(f"{memory}/memory.events", "oom_kill"),
            _field(f"{pids}/pids.events", "max"),
        )
    return Usage(
        _number(f"{memory}/memory.max_usage_in_bytes"),
        _field(f"{memory}/memory.oom_control", "oom_kill"),
        _field(f"{pids}/pids.events", "max"),
    )


def _number(path: str) -> int:
    try:
        with open(path) as file:
            return int(file.read())
    except (OSError, ValueError):
        return -1


def _field(path: str, name: str) -> int:
    try:
        with open(path) as file:
            for line in file:
                key, _, value = line.partition(" ")
                if key == name:
                    return int(value)
    except (OSError, ValueError):
        pass
    return 0


def remove(groups: Cgroups) -> list[str]:
    """Removes the groups, ending what still runs in them; the paths that would not go."""
    return [path for _, path in groups.directories if not remove_directory(path)]


def remove_directory(path: str) -> bool:
    """Removes one group. A process that has ended may linger for a moment: tries for a second."""
    import signal
    import time

    for _ in range(50):
        try:
            os.rmdir(path)
            return True
        except FileNotFoundError:
            return True
        except OSError:
            for pid in _procs(path):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.02)
    return False


def _procs(path: str) -> list[int]:
    try:
        with open(f"{path}/cgroup.procs") as file:
            return [int(line) for line in file]
    except OSError:
        return []
