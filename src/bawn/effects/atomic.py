"""Atomic replacement: a reader sees the old bytes or the new ones, also after a power cut.

A temporary file in the same directory, fsync of it, rename, fsync of the directory. Owner, mode and
attributes are set before any byte is written, so that nothing is ever wider than the target.
"""

import os

Attributes = tuple[tuple[str, bytes], ...]


def write_atomic(
    path: str,
    data: bytes,
    mode: int,
    owner: tuple[int, int] | None = None,
    attributes: Attributes | None = None,
    temporary: str = "",
) -> None:
    """Replaces or makes `path`. `attributes` are all it will have (None: whatever a new file gets);
    `temporary` is the name of the file beside it, for those who must find it after a kill.

    Raises OSError: then `path` is as it was, unless only the last fsync failed.
    """
    directory, name = os.path.split(path)
    temporary = temporary or f"{directory}/.{name}.{os.getpid()}.new"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            if owner is not None:
                os.fchown(fd, *owner)
            os.fchmod(fd, mode)
            if attributes is not None:
                _set_attributes(fd, attributes)
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
    sync_directory(directory)


def _set_attributes(fd: int, wanted: Attributes) -> None:
    """Extended attributes, an ACL among them. A directory's default ACL gives a new file one that
    the old file did not have: it goes."""
    present = {name: os.getxattr(fd, name) for name in os.listxattr(fd)}
    for name in present.keys() - dict(wanted).keys():
        os.removexattr(fd, name)
    for name, value in wanted:
        if present.get(name) != value:  # a label that only the kernel may set is there already
            os.setxattr(fd, name, value)


def sync_directory(path: str) -> None:
    """A name made or removed in `path` outlives a power cut. Raises OSError."""
    fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
