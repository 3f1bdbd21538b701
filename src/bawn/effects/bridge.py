"""Bridge mode: the way out of one run as a docker network of its own, behind the wall.

    docker network (undo: remove it) -> relay and proxy on its gateway's address -> the wall's way
    -> container -> the wall takes the port -> the word to begin -> a look every half second

The network is internal and holds this one container; its bridge is named so that the wall knows it before
it is there. In the box everything is as with the socket: PID 1 leads loopback to the one address and port.
"""

import contextlib
import os

from bawn.effects import docker_api, wall, wall_tools
from bawn.effects.names import RunPaths, container_of
from bawn.effects.way import Way, listen
from bawn.errors import BawnError, EngineError
from bawn.facts.model import Facts
from bawn.plan.docker import LABEL
from bawn.plan.model import Plan
from bawn.plan.wall import bridge_name
from bawn.typed import TYPE_CHECKING

if TYPE_CHECKING:
    import socket


class Bridge(Way):
    """A context manager: inside it the network is there, and the way is open."""

    def __init__(self, plan: Plan, facts: Facts, paths: RunPaths, run_id: str, docker: str) -> None:
        super().__init__(plan, facts.state, paths, run_id)
        self.door, self.network = "", container_of(run_id)
        self._docker, self._where = docker, wall.place(facts.runtime)
        self._watch = wall.Watch(self._where, run_id)

    def __enter__(self) -> "Bridge":
        """Raises HostError or EngineError; nothing is left then."""
        try:
            wall.ready(self._where)
            super().__enter__()
            address, _, port = self.address.partition(":")
            wall.open_for(self._where, self._run, bridge_name(self._run), address, int(port))
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            super().__exit__()
        finally:
            self._remove()

    def _listen(self) -> "socket.socket":
        bridge = bridge_name(self._run)
        gateway = docker_api.make_network(self._docker, self.network, bridge, LABEL)
        if bridge not in wall_tools.bridges():
            raise EngineError(
                f"docker made {bridge} in another network namespace than bawn's",
                "run bawn where dockerd runs: the wall guards that namespace alone",
            )
        listener = listen((gateway, 0))
        self.address = f"{gateway}:{listener.getsockname()[1]}"
        return listener

    def begun(self) -> None:
        wall.guard(self._where, self._run)

    def broken(self) -> str:
        return "; ".join(f"{one.rule} {one.place}: {one.message}" for one in self._watch.check())

    def _remove(self) -> None:
        """The container is gone already; what cannot be removed is `sweep`'s."""
        self._end()
        with contextlib.suppress(BawnError, OSError):
            wall.close_for(self._where, self._run)
        with contextlib.suppress(BawnError):
            docker_api.remove_network(self._docker, self.network)


def sweep(runtime: str, docker: str, run_id: str) -> None:
    """What a killed run of bridge mode has left; nothing where it was none. Raises BawnError."""
    docker_api.remove_network(docker, container_of(run_id))
    if os.path.isdir(f"{runtime}/wall") and os.geteuid() == 0:
        wall.close_for(wall.place(runtime), run_id)
