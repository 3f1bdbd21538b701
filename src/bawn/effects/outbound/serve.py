"""`bawn outbound serve`: the guard as HTTP/1.1 on a Unix socket, one thread a connection.

Threads, not asyncio: an answer carries descriptors (SCM_RIGHTS, unix(7)), which no asyncio transport
sends, and a large reply in one thread does not hold up a small one in another. What bounds it:
MAX_CONNECTIONS, one deadline for the whole of a request, one for the answer, one for silence.
"""

import os
import socket
import stat
import struct
import sys
import time
from array import array
from collections.abc import Callable
from contextlib import suppress
from threading import BoundedSemaphore, Thread

from bawn.effects.outbound.service import Result, Service
from bawn.errors import BawnError, HostError
from bawn.evidence.events import Observer, Silent
from bawn.outbound import http
from bawn.outbound.http import Head, Refused
from bawn.typed import Any

MAX_CONNECTIONS = 32
REQUEST, ANSWER, IDLE = 10.0, 10.0, 60.0  # seconds
_CALLS = {"/check": "check", "/stage": "stage", "/open": "open", "/unstage": "unstage"}
_TICK, _SWEEP = 0.5, 60.0  # seconds: how soon a stop is seen; how often old copies are removed


class Server:
    """Listens from when it is made. `service` may be replaced while it serves."""

    def __init__(self, path: str, service: Service, observer: Observer | None = None) -> None:
        """Raises HostError where the socket cannot be made, or would be anybody's."""
        self.path = os.path.abspath(path)
        self.service = service
        self.stopped = False
        self._observer = observer or Silent()
        self._slots = BoundedSemaphore(MAX_CONNECTIONS)
        self._socket = _listen(self.path)
        self._ident = _ident(self.path)

    def serve(self, tick: Callable[[], None] = lambda: None) -> None:
        """Until `stopped` is set; the socket is removed then. `tick` is called twice a second or more."""
        # With the default of 5 ms a thread that extracts would delay every other one by that much.
        sys.setswitchinterval(0.0005)
        swept = time.monotonic()
        self._socket.settimeout(_TICK)
        try:
            while not self.stopped:
                tick()
                try:
                    connection, _ = self._socket.accept()
                except TimeoutError:
                    connection = None
                except OSError as error:  # out of descriptors: those that are served will end
                    self._observer.warn(f"cannot accept a connection: {error.strerror}")
                    time.sleep(0.05)
                    connection = None
                if connection:
                    self._start(connection)
                if time.monotonic() - swept > _SWEEP:
                    swept = time.monotonic()
                    self._sweep()
        finally:
            self._socket.close()
            if _ident(self.path) == self._ident:
                os.unlink(self.path)

    def _sweep(self) -> None:
        try:
            self.service.stage.sweep()
        except (HostError, OSError) as error:
            self._observer.warn(f"old copies cannot be removed: {error}")

    def _start(self, connection: socket.socket) -> None:
        uid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
        if uid != os.geteuid():
            self._observer.warn(f"a connection of uid {uid} was refused")
            connection.close()
        elif not self._slots.acquire(blocking=False):
            connection.setblocking(False)
            with suppress(OSError):
                connection.send(http.answer(503, {"error": "too many connections"}, False))
            connection.close()
        else:
            Thread(target=self._connection, args=(connection,), daemon=True).start()

    def _connection(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._requests(connection)
        except OSError:
            pass  # the other end is gone, or late
        except Exception as error:  # a fault of bawn's own ends one connection, and nothing leaves
            self._observer.warn(f"a request failed: {type(error).__name__}: {error}")
        finally:
            self._slots.release()

    def _requests(self, connection: socket.socket) -> None:
        data = b""
        keep = True
        while keep:
            fds: tuple[int, ...] = ()
            try:
                read = _request(connection, data)
                if read is None:
                    return
                head, content, data = read
                keep = head.keep
                result = self._answer(head, content)
                fds = result.fds
                message = http.answer(200, result.data, keep)
            except Refused as error:
                keep = False
                message = http.answer(error.status, {"error": error.why}, False)
            except BawnError as error:
                keep = False
                self._observer.warn(error.message)
                message = http.answer(500, {"error": error.message}, False)
            try:
                _send(connection, message, fds)
            finally:
                for fd in fds:
                    os.close(fd)

    def _answer(self, head: Head, content: bytes) -> Result:
        service = self.service
        if head.target == "/health":
            if head.method != "GET":
                raise Refused(405, "GET")
            return Result({"bawn_outbound": 1, "drifted": service.guard.drifted()})
        name = _CALLS.get(head.target)
        if name is None:
            raise Refused(404, f"{', '.join(_CALLS)}, /health")
        if head.method != "POST":
            raise Refused(405, "POST")
        data: Any = http.body(head.headers.get("content-type", ""), content)
        return service.call(name, data)


def _request(connection: socket.socket, data: bytes) -> tuple[Head, bytes, bytes] | None:
    """The next request, its body and what came behind it; None where the client has ended."""
    deadline = time.monotonic() + (REQUEST if data else IDLE)
    began = bool(data)
    pieces = bytearray(data)
    found = None
    while True:
        if found is None:
            whole = http.head(bytes(pieces[: http.MAX_HEAD + 4]))
            if whole:
                found = whole
                if found[0].expect and len(pieces) < found[1] + found[0].length:
                    connection.sendall(http.CONTINUE)
        if found and len(pieces) >= found[1] + found[0].length:
            end = found[1] + found[0].length
            return found[0], bytes(pieces[found[1] : end]), bytes(pieces[end:])
        left = deadline - time.monotonic()
        if left <= 0:
            if not began:
                return None
            raise Refused(408, "the request did not come to its end in time")
        connection.settimeout(left)
        try:
            more = connection.recv(1 << 18)
        except TimeoutError:
            continue
        if not more:
            if began:
                raise Refused(400, "the request ended early")
            return None
        if not began:
            began, deadline = True, time.monotonic() + REQUEST
        pieces += more


def _send(connection: socket.socket, message: bytes, fds: tuple[int, ...]) -> None:
    """All of it in time; the descriptors go with its first bytes."""
    deadline = time.monotonic() + ANSWER
    connection.settimeout(ANSWER)
    view = memoryview(message)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))] if fds else []
    while view:
        view = view[connection.sendmsg([view], rights) :]
        rights = []
        left = deadline - time.monotonic()
        if left <= 0 and view:
            raise TimeoutError
        connection.settimeout(max(left, 0.001))


def _listen(path: str) -> socket.socket:
    """A socket that only its owner can connect to, in a directory that nobody else can change."""
    folder = os.path.dirname(path)
    try:
        info = os.stat(folder)
        if info.st_uid not in (0, os.geteuid()) or (info.st_mode & 0o022 and not info.st_mode & stat.S_ISVTX):
            raise HostError(f"others can change {folder}", "put the socket into a directory of your own")
        _clear(path)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            listening.bind(path)
        finally:
            os.umask(mask)
        listening.listen(MAX_CONNECTIONS)
    except OSError as error:
        raise HostError(f"cannot listen at {path}: {error.strerror or error}") from None
    return listening


def _clear(path: str) -> None:
    """Removes the socket of a service that was killed. Raises HostError for anything else there."""
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(info.st_mode) or info.st_uid != os.geteuid():
        raise HostError(f"{path} is there already, and no socket of yours", "choose another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise HostError(f"another service listens at {path}", "stop it, or choose another path")


def _ident(path: str) -> tuple[int, int]:
    try:
        info = os.lstat(path)
    except OSError:
        return 0, 0
    return info.st_dev, info.st_ino
