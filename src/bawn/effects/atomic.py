"""Atomic replacement: a reader sees the old bytes or the new ones, also after a power cut.

A temporary file in the same directory, fsync of it, rename, fsync of the directory. The mode is set
before any byte is written, so that nothing is ever wider than the target.
"""

import os


def write_atomic(path: str, data: bytes, mode: int, owner: tuple[int, int] | None = None) -> None:
    """Replaces or makes `path`. Raises OSError, and then `path` is as it was."""
    directory, name = os.path.split(path)
    temporary = f"{directory}/.{name}.{os.getpid()}.new"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            if owner is not None:
                os.fchown(fd, *owner)
            os.fchmod(fd, mode)
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    parent = os.open(directory or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
