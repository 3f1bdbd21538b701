"""Writes a policy file: a new one never over another, a replaced one kept beside it."""

import os
import stat

from bawn.effects.atomic import write_atomic
from bawn.errors import HostError, UsageError
from bawn.facts.policy_file import check

_MODE = 0o644


def write_policy(path: str, data: bytes, force: bool) -> str:
    """Makes `path`, or with `force` replaces it; the name of the copy of what was there, else "".

    The file belongs to the owner of its directory where bawn is root. Raises UsageError where there
    is one that may not be replaced, PolicyError where it would not be believed, HostError.
    """
    folder = os.path.dirname(path)
    try:
        about = os.stat(folder)
        check(path, None, about)
        owner = (about.st_uid, about.st_gid) if os.getuid() == 0 else None
        if not os.path.lexists(path):
            _make(path, data, _MODE, owner)
            return ""
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise UsageError(f"{path} is not a regular file", f"look at it, then: rm {path}")
        if not force:
            raise UsageError(f"{path} is there already", "bawn init --force replaces it and keeps a copy")
        kept = _keep(path)
        write_atomic(path, data, _MODE, owner)
    except FileExistsError:
        raise UsageError(f"{path} was made by somebody else just now", f"look at {path}") from None
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}") from None
    return kept


def _make(path: str, data: bytes, mode: int, owner: tuple[int, int] | None) -> None:
    """A new file, whole or not at all. Raises OSError, FileExistsError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            if owner:
                os.fchown(fd, *owner)
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fchmod(fd, mode)
            os.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        os.unlink(path)
        raise


def _keep(path: str) -> str:
    """A copy of the file beside it, under the first free name, with its mode and owner."""
    with open(path, "rb") as file:
        info = os.fstat(file.fileno())
        data = file.read()
    number = 1
    while os.path.lexists(f"{path}.{number}.bak"):
        number += 1
    copy = f"{path}.{number}.bak"
    _make(copy, data, stat.S_IMODE(info.st_mode), (info.st_uid, info.st_gid))
    return copy
