"""Makes bawn's stdio fit to be handed to a box.

gVisor keeps a file position of its own for a regular file: what the box writes would start at byte
0 again, over what the shell wrote before it, and what it reads would too. And whoever holds the file
can truncate it, which nobody gave the box. So a regular file stays with bawn: the box gets a pipe, and
a thread copies.
"""

import os
import stat


class Stdio:
    """A context. `files` are the descriptors that the child is to have instead of bawn's own:
    {its number: ours}. `started` is called once it has them."""

    def __init__(self) -> None:
        self.files: dict[int, int] = {}
        self._threads: list[object] = []

    def __enter__(self) -> "Stdio":
        if _regular(0) and os.lseek(0, 0, os.SEEK_CUR) != 0:
            self._copy(0, into_box=True)
        for fd in (1, 2):
            if fd == 2 and 1 in self.files and os.path.sameopenfile(1, 2):
                self.files[2] = os.dup(self.files[1])  # `>log 2>&1`: one pipe keeps the order
            elif _regular(fd):
                self._copy(fd, into_box=False)
        return self

    def started(self) -> None:
        """The child has its ends; bawn's copies of them would keep the pipes open for ever."""
        for end in self.files.values():
            os.close(end)
        self.files = {}

    def __exit__(self, *_: object) -> None:
        self.started()
        for thread in self._threads:
            thread.join()  # type: ignore[attr-defined]

    def _copy(self, fd: int, into_box: bool) -> None:
        """A pipe for descriptor `fd`, and the thread that moves its bytes."""
        import threading

        reader, writer = os.pipe()
        source, sink, ours = (fd, writer, writer) if into_box else (reader, fd, reader)
        self.files[fd] = reader if into_box else writer

        def move() -> None:
            try:
                while data := os.read(source, 65536):
                    while data:
                        data = data[os.write(sink, data) :]
            except OSError:
                pass  # the other side has closed; what is full (ENOSPC) the box sees as a closed pipe
            finally:
                os.close(ours)

        thread = threading.Thread(target=move, daemon=True)
        thread.start()
        if not into_box:  # a box need not read all of its input
            self._threads.append(thread)


def _regular(fd: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(fd).st_mode)
    except OSError:
        return False  # closed: runsc says so itself
