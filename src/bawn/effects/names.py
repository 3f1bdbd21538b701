"""Names of everything a run makes. All derive from the run id, so that orphans can be found."""

import os
import time

from bawn.typed import NamedTuple


def new_run_id() -> str:
    """Sortable by time, unique by chance: 11 hex digits of milliseconds, 6 of randomness. Of one length
    always: runsc finds containers by prefix."""
    return f"{time.time_ns() // 1_000_000:011x}{os.urandom(3).hex()}"


class RunPaths(NamedTuple):
    """The files of one run, below bawn's runtime directory."""

    directory: str
    lock: str  # held by the bawn that runs it; free means that bawn is dead
    config: str  # OCI config.json
    rootfs: str
    state: str  # runsc --root
    cage: str  # what launch.c reads: mounts and late masks
    places: str  # the directory in which launch.c binds every host path
    empty: str  # the file that covers masked ones
    empty_directory: str
    seed: str
    log: str  # runsc's own log
    own: str  # engine docker: what the box sees of bawn's own (PID 1, the seed, the word to begin)
    groups: str  # the control groups of the run, one path a line: where `sweep` finds them
    way: str  # the way out: its two sockets
    docker: str  # engine docker: the socket of its daemon, and the container's id once there is one
    resolver: str  # the resolv.conf of a box with a way out


def run_paths(runtime: str, run_id: str) -> RunPaths:
    """Where the run `run_id` keeps its files. `runtime` is bawn's runtime directory."""
    base = f"{runtime}/runs/{run_id}"
    return RunPaths(
        base,
        *(f"{base}/{name}" for name in (
            "lock", "config.json", "rootfs", "state", "cage", "m", "empty", "empty.d", "seed", "runsc.log",
            "own", "groups", "way", "docker", "resolv.conf",
        )),
    )  # fmt: skip


def cgroup_of(root: str, run_id: str) -> str:
    """The control group of a run below `root`, one controller's directory."""
    return f"{root}/bawn/{run_id}"


def container_of(run_id: str) -> str:
    """The name of a run's docker container."""
    return f"bawn-{run_id}"
