"""Makes bawn's stdio fit to be handed to a box.

gVisor keeps a file position of its own for a regular file: what the box writes would start at byte
0 again, over what the shell wrote before it, and what it reads would too. A file opened for
appending has no position to get wrong; a pipe has none at all.
"""

import fcntl
import os
import stat


class Stdio:
    """A context: regular output files append while it lasts; `stdin` is the descriptor to use."""

    def __init__(self) -> None:
        self.stdin = 0
        self._changed: list[tuple[int, int]] = []

    def __enter__(self) -> "Stdio":
        for fd in (1, 2):
            flags = fcntl.fcntl(fd, fcntl.F_GETFL)
            if _regular(fd) and not flags & os.O_APPEND:
                os.lseek(fd, 0, os.SEEK_END)
                fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_APPEND)
                self._changed.append((fd, flags))
        if _regular(0) and os.lseek(0, 0, os.SEEK_CUR) != 0:
            self.stdin = _pumped()
        return self

    def __exit__(self, *_: object) -> None:
        for fd, flags in reversed(self._changed):
            fcntl.fcntl(fd, fcntl.F_SETFL, flags)
            os.lseek(fd, 0, os.SEEK_END)
        if self.stdin:
            os.close(self.stdin)


def _regular(fd: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(fd).st_mode)
    except OSError:
        return False  # closed: runsc says so itself


def _pumped() -> int:
    """The rest of stdin through a pipe, fed by a thread that ends with its reader."""
    import threading

    reader, writer = os.pipe()

    def pump() -> None:
        try:
            while data := os.read(0, 65536):
                while data:
                    data = data[os.write(writer, data) :]
        except OSError:
            pass  # the box has closed its stdin
        finally:
            os.close(writer)

    threading.Thread(target=pump, daemon=True).start()
    return reader
