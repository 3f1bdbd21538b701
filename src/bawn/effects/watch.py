"""Late masks of engine docker: inotify on the mounted directories.

Between runsc and the host stands dockerd, so bawn cannot answer file opens by name as engine gvisor
does (launch.c). It watches instead, and the run ends when a masked name appears or is replaced.
inotify(7); by ctypes, since no well-kept package does less.
"""

import ctypes
import os
import struct

from bawn.errors import HostError
from bawn.plan.model import Guard
from bawn.policy.patterns import Matcher

_CREATE, _MOVED_TO, _ISDIR, _OVERFLOW = 0x100, 0x80, 0x40000000, 0x4000
_EVENT = struct.Struct("iIII")


class Watch:
    """Watches every directory below each guard's root. A context manager."""

    def __init__(self, guards: tuple[Guard, ...]) -> None:
        self._guards = [(g.root, Matcher(g.patterns)) for g in guards]
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = -1
        self._directories: dict[int, tuple[str, str, Matcher]] = {}

    def __enter__(self) -> "Watch":
        """Raises HostError when a directory cannot be watched: then the mask could not hold."""
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise HostError("cannot watch for masked names: inotify_init1 failed")
        try:
            for root, matcher in self._guards:
                for base, _, _ in os.walk(root):
                    self._add(base, root, matcher)
        except HostError:
            os.close(self._fd)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def _add(self, path: str, root: str, matcher: Matcher) -> None:
        number = self._libc.inotify_add_watch(self._fd, os.fsencode(path), _CREATE | _MOVED_TO)
        if number < 0:
            reason = os.strerror(ctypes.get_errno())
            raise HostError(
                f"cannot watch {path} for masked names: {reason}",
                "sudo sysctl -w fs.inotify.max_user_watches=524288",
            )
        self._directories[number] = (path, root, matcher)

    def hit(self) -> str:
        """The path of a masked name that has appeared since the last call; "" for none."""
        try:
            data = os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return ""
        at = 0
        while at < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, at)
            name = os.fsdecode(data[at + 16 : at + 16 + length].rstrip(b"\0"))
            at += 16 + length
            if mask & _OVERFLOW:
                return "too many changes at once to watch"
            directory, root, matcher = self._directories[number]
            path = f"{directory}/{name}"
            if matcher.match(name, path[len(root) + 1 :]):
                return path
            if mask & _ISDIR:
                self._add(path, root, matcher)
        return ""
