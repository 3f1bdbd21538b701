"""Late masks of engine docker: inotify on the mounted directories.

Between runsc and the host stands dockerd, so bawn cannot answer file opens by name as engine gvisor
does (launch.c). It watches instead, and the run ends when a masked name appears or is replaced.
inotify(7); by ctypes, since no well-kept package does less.

A directory is watched first and listed then, at the start and whenever one appears, so that no
name can slip in between.
"""

import errno
import os
import struct

from bawn.errors import HostError
from bawn.plan.model import Guard
from bawn.policy.patterns import Matcher

_EVENTS = 0x100 | 0x80 | 0x2000000 | 0x1000000  # CREATE, MOVED_TO, DONT_FOLLOW, ONLYDIR
_ISDIR, _OVERFLOW, _IGNORED = 0x40000000, 0x4000, 0x8000
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES)
_EVENT = struct.Struct("iIII")


class Watch:
    """Watches every directory below each guard's root. A context manager with a `fileno` (-1 where
    nothing is guarded).

    `known` are the masked names that the plan has dealt with: those may be there, nothing else may.
    Directories that bawn cannot read are the plan's to judge (BWN280).
    """

    def __init__(self, guards: tuple[Guard, ...], known: frozenset[str]) -> None:
        self._guards = [(g.root, Matcher(g.patterns)) for g in guards]
        self._known = known
        self._fd = -1
        self._directories: dict[int, list[tuple[str, str, Matcher]]] = {}
        self._found = ""

    def __enter__(self) -> "Watch":
        """Raises HostError when a directory cannot be watched: then the mask could not hold."""
        if not self._guards:
            return self
        import ctypes

        self._errno = ctypes.get_errno
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise HostError(f"cannot watch for masked names: {os.strerror(self._errno())}")
        try:
            self._follow_all()
        except HostError:
            os.close(self._fd)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops watching. It takes the kernel 6 ms: best done while something else is awaited."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def fileno(self) -> int:
        return self._fd

    def hit(self) -> str:
        """The path of a masked name that has appeared since the start; "" for none."""
        while self._fd >= 0 and not self._found:
            try:
                data = os.read(self._fd, 1 << 16)
            except BlockingIOError:
                break
            self._judge(data)
        return self._found

    def _judge(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, at)
            name = os.fsdecode(data[at + 16 : at + 16 + length].rstrip(b"\0"))
            at += 16 + length
            if mask & _OVERFLOW:
                self._follow_all()  # what was not told is looked for
            elif mask & _IGNORED:
                self._directories.pop(number, None)
            for directory, root, matcher in self._directories.get(number, ()):
                path = f"{directory}/{name}"
                if matcher.match(name, path[len(root) + 1 :]):
                    self._found = self._found or path
                elif mask & _ISDIR:
                    self._follow(path, root, matcher)

    def _follow_all(self) -> None:
        for root, matcher in self._guards:
            self._follow(root, root, matcher)

    def _follow(self, top: str, root: str, matcher: Matcher) -> None:
        """Watches `top` and everything below, and notes a masked name that is not known."""
        queue = [top]
        while queue:
            path = queue.pop()
            if not self._add(path, root, matcher):
                continue
            try:
                with os.scandir(path) as entries:
                    for entry in entries:
                        below = entry.path
                        if matcher.match(entry.name, below[len(root) + 1 :]):
                            if below not in self._known:
                                self._found = self._found or below
                        elif entry.is_dir(follow_symlinks=False):
                            queue.append(below)
            except OSError as error:
                if error.errno not in _GONE:
                    raise HostError(f"cannot look for masked names in {path}: {error.strerror}") from None

    def _add(self, path: str, root: str, matcher: Matcher) -> bool:
        """False where it has gone again, or cannot be read."""
        number = self._libc.inotify_add_watch(self._fd, os.fsencode(path), _EVENTS)
        if number < 0:
            code = self._errno()
            if code in _GONE:
                return False
            raise HostError(
                f"cannot watch {path} for masked names: {os.strerror(code)}",
                "sudo sysctl -w fs.inotify.max_user_watches=1048576" if code == errno.ENOSPC else "",
            )
        watched = self._directories.setdefault(number, [])
        if (path, root, matcher) not in watched:
            watched.append((path, root, matcher))
        return True
