"""What killed bawns left behind: found by name, removed.

The kernel has ended their processes and namespaces already (launch.c). What can be left is files
and empty control groups of engine gvisor, and containers of engine docker.
"""

import fcntl
import os
import time

from bawn.effects.cgroup import remove_directory
from bawn.effects.names import cgroup_of, container_of, run_paths
from bawn.effects.remove import remove_tree
from bawn.errors import BawnError
from bawn.facts.model import HostFact
from bawn.typed import NamedTuple


class Swept(NamedTuple):
    """Run ids that were dead and are gone, and what would not go."""

    runs: tuple[str, ...]
    stuck: tuple[str, ...]


def sweep(runtime: str, host: HostFact) -> Swept:
    """Removes every dead run of this user. A run whose lock is held is alive and left alone."""
    gone: list[str] = []
    stuck: list[str] = []
    for run_id in _runs(runtime):
        lock = _take(run_paths(runtime, run_id).lock)
        if lock is None:
            continue
        try:
            paths = run_paths(runtime, run_id)
            left = [path for path in _groups(paths.groups, run_id, host) if not remove_directory(path)]
            if os.path.exists(paths.docker):
                left += _container(paths.docker, run_id) or _network(runtime, paths.docker, run_id)
            if not left:
                remove_tree(paths.directory)
            if os.path.exists(paths.directory):
                left.append(paths.directory)
            stuck += left
            if not left:
                gone.append(run_id)
        finally:
            os.close(lock)
    return Swept(tuple(gone), tuple(stuck))


def _groups(record: str, run_id: str, host: HostFact) -> list[str]:
    """The groups that the run wrote down. In v2 what is delegated differs from process to process, so that
    this one's own view says nothing of that run's; it counts for a run that wrote nothing down."""
    try:
        with open(record, errors="surrogateescape") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return list(dict.fromkeys(cgroup_of(root, run_id) for _, root in host.cgroup_roots))


def _container(mark: str, run_id: str) -> list[str]:
    """Removes the container of a dead run of engine docker; its name where that cannot be done."""
    from bawn.effects import docker_api

    with open(mark) as file:
        socket, container = (file.read() + "\n").split("\n")[:2]
    name = container_of(run_id)
    try:
        docker_api.remove(socket, name)
    except BawnError as error:
        docker_api.end_leftovers(container)
        # A daemon whose socket is gone too has been taken away: it has nothing of ours any more.
        gone = not os.path.exists(socket) and not docker_api.leftovers(container)
        return [] if gone else [f"container {name}: {error.message}"]
    docker_api.end_leftovers(container)
    return []


def _network(runtime: str, mark: str, run_id: str) -> list[str]:
    from bawn.effects import bridge

    with open(mark) as file:
        socket = file.readline().rstrip("\n")
    try:
        bridge.sweep(runtime, socket, run_id)
    except BawnError as error:
        return [] if not os.path.exists(socket) else [f"network {container_of(run_id)}: {error.message}"]
    return []


def dead(runtime: str) -> bool:
    """Is there anything to sweep? The cheap question that every start asks."""
    for run_id in _runs(runtime):
        lock = _take(run_paths(runtime, run_id).lock)
        if lock is not None:
            os.close(lock)
            return True
    return False


def _runs(runtime: str) -> list[str]:
    """The names below `runs`. One with a dot was being made when its bawn died, or is just now."""
    try:
        names = sorted(os.listdir(f"{runtime}/runs"))
    except FileNotFoundError:
        return []
    return [name for name in names if name[0] != "." or _old(f"{runtime}/runs/{name}")]


def _old(path: str) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime > 60
    except OSError:
        return False


def _take(path: str) -> int | None:
    """The lock of a dead run, or None for a live one."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd
