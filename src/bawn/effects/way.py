"""The way out of one run, as processes: the relay, which has the sockets, and the proxy, which decides.

    way/          0700: only who runs bawn enters
      control     the proxy's control socket (`bawn egress reload`)
      door/       0711, the one directory of these that the box sees
        proxy.sock

Whoever reaches the socket is this run: nobody else can enter the directory, and the box sees nothing
but the door. Both programs end with bawn, whatever ends it, and with either of them ends the way.
"""

import os
import sys
import time

from bawn.effects import process
from bawn.effects.names import RunPaths
from bawn.effects.no_way import NoWay
from bawn.errors import HostError
from bawn.plan.model import Plan
from bawn.plan.oci import UNUSED_ID
from bawn.relay import RELAY
from bawn.typed import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

PROXY_ID = UNUSED_ID + 1  # who the two are where bawn is root: nobody of this machine
CONNECTIONS = 1024
HEAD = 30  # seconds for a request, its DNS and its TLS hello
IDLE = 3600  # seconds without a byte: a provider may think for long, and a database sleeps
PATIENCE = 2.0  # seconds in which the two end by themselves
_QUEUE = 1024
# With `site`, which bawn itself does without: h11 is a package of the machine or of bawn's environment.
_PROXY = (
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); "
    "runpy.run_module('bawn.egress.serve.main', run_name='__main__', alter_sys=True)"
)
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Way(NoWay):
    """A context manager: the way is open inside it. `door` is the directory for the box."""

    def __init__(self, plan: Plan, state: str, paths: RunPaths, run_id: str) -> None:
        self.door = f"{paths.way}/door"
        self._plan, self._state, self._paths, self._run = plan, state, paths, run_id
        self._children: dict[str, int] = {}
        self._parent = -1

    def __enter__(self) -> "Way":
        """Raises HostError; nothing is left then."""
        try:
            self._start()
        except OSError as error:
            self._end()
            raise HostError(f"cannot make the way out in {self._paths.way}: {error.strerror}") from None
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name, child in list(self._children.items()):
            if os.waitpid(child, os.WNOHANG)[0]:
                del self._children[name]
                self.notes = (f"the way out closed before the run ended: its {name} had died",)
        self._end()

    def _start(self) -> None:
        import socket

        from bawn.evidence.passages import log_of
        from bawn.plan.way_config import Config, write_config

        os.mkdir(self._paths.way, 0o700)
        open_here: list[int] = []
        try:
            door = self._listen()
            control = _at(f"{self._paths.way}/control", 0o600)
            ours, theirs = socket.socketpair()
            log = os.open(log_of(self._state), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            reader, self._parent = os.pipe()
            null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            said = os.open(
                f"{self._paths.way}/stderr", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
            sockets = [s.detach() for s in (door, control, ours, theirs)]
            open_here += [log, reader, null, said, *sockets]
            uid = str(PROXY_ID if os.geteuid() == 0 else 0)
            quiet = {0: null, 1: null, 2: said}
            relay = [RELAY, uid, "3", str(CONNECTIONS), str(HEAD), str(IDLE), "4"]
            self._spawn("relay", relay, {**quiet, 3: sockets[3], 4: sockets[0]})
            python = [sys.executable, "-I", "-c", _PROXY, _ROOT]
            files = {**quiet, 3: sockets[2], 4: log, 5: reader, 6: sockets[1]}
            self._spawn("proxy", [*python, "3", "4", "5", "6", uid], files)
        finally:
            for fd in open_here:
                os.close(fd)
        line = write_config(Config(self._run, self._plan.profile, self._plan.egress))
        while line:
            line = line[os.write(self._parent, line) :]

    def _listen(self) -> "socket.socket":
        """What the box reaches."""
        os.mkdir(self.door, 0o711)
        os.chmod(self.door, 0o711)
        return _at(f"{self.door}/proxy.sock", 0o666)

    def _spawn(self, name: str, argv: list[str], files: dict[int, int]) -> None:
        # Above every number that is given out, so that none is overwritten before it is used.
        import fcntl

        high = {theirs: fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, 64) for theirs, ours in files.items()}
        try:
            self._children[name] = process.spawn(argv, {"PATH": os.defpath}, high, group=True)
        finally:
            for fd in high.values():
                os.close(fd)

    def _end(self) -> None:
        """The two see the end of the pipe; who does not is killed. Theirs is all that they hold."""
        if self._parent >= 0:
            os.close(self._parent)
            self._parent = -1
        deadline = time.monotonic() + PATIENCE
        while self._children:
            for name, child in list(self._children.items()):
                if os.waitpid(child, os.WNOHANG)[0]:
                    del self._children[name]
                elif time.monotonic() > deadline:
                    os.kill(child, 9)
            if self._children:
                time.sleep(0.005)


def _at(path: str, mode: int) -> "socket.socket":
    """A listening Unix socket. By way of the directory's descriptor: a path of a socket is short (unix(7)),
    and this may be long."""
    directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        here = f"/proc/self/fd/{directory}/{os.path.basename(path)}"
        listener = listen(here)
        os.chmod(here, mode)
    finally:
        os.close(directory)
    return listener


def listen(address: str | tuple[str, int]) -> "socket.socket":
    """A listening socket at a path, or at an IPv4 address and port. Raises OSError."""
    import socket

    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        listener.bind(address)
        listener.listen(_QUEUE)
    except BaseException:
        listener.close()
        raise
    return listener
