"""A file as it is now: content, mode, owner, attributes, and the links that lead to it."""

import os
import stat

from bawn.digest import sha256_hex
from bawn.effects.atomic import Attributes, write_atomic
from bawn.errors import HostError
from bawn.typed import NamedTuple

LIMIT = 16 << 20  # bytes; a configuration that is larger is something else


class Snapshot(NamedTuple):
    """What an undo has to bring back. Without a file only `real` counts."""

    real: str  # every link resolved: this is what is read and replaced
    exists: bool = False
    sha256: str = ""
    mode: int = 0
    uid: int = 0
    gid: int = 0
    attributes: Attributes = ()

    def differs(self, other: "Snapshot") -> str:
        """How `other` is not this, for a person; "" where it is."""
        if self.real != other.real:
            return f"it leads to {other.real}, not to {self.real}"
        if self.exists != other.exists:
            return "it is there" if other.exists else "it is gone"
        found = []
        if self.sha256 != other.sha256:
            found.append("its content changed")
        if self.mode != other.mode:
            found.append(f"its mode is {other.mode:04o}, not {self.mode:04o}")
        if (self.uid, self.gid) != (other.uid, other.gid):
            found.append(f"its owner is {other.uid}:{other.gid}, not {self.uid}:{self.gid}")
        if self.attributes != other.attributes:
            found.append("its ACL or extended attributes changed")
        return ", ".join(found)


def look(path: str) -> tuple[Snapshot, bytes | None]:
    """The file behind `path`, and its content.

    Raises HostError for what bawn does not edit: no regular file, several names, too large, barred.
    """
    real = os.path.realpath(path)
    try:
        fd = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return Snapshot(real), None
    except OSError as error:
        raise HostError(f"cannot read {real}: {error.strerror}") from None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise HostError(f"{real} is not a regular file")
        if info.st_nlink > 1:
            raise HostError(
                f"{real} has {info.st_nlink} names (hard links): replacing it would leave the others behind",
                f"find / -xdev -samefile {real}, and keep one name",
            )
        if info.st_size > LIMIT:
            raise HostError(f"{real} has {info.st_size} bytes; at most {LIMIT} are edited")
        attributes = tuple(sorted((name, os.getxattr(fd, name)) for name in os.listxattr(fd)))
        with open(fd, "rb", closefd=False) as file:
            data = file.read(LIMIT + 1)
    except OSError as error:
        raise HostError(f"cannot read {real}: {error.strerror}") from None
    finally:
        os.close(fd)
    mode = stat.S_IMODE(info.st_mode)
    return Snapshot(real, True, sha256_hex(data), mode, info.st_uid, info.st_gid, attributes), data


def put(snapshot: Snapshot, data: bytes, temporary: str) -> None:
    """Writes `data` with the snapshot's mode, owner and attributes. Raises OSError."""
    owner = (snapshot.uid, snapshot.gid)
    write_atomic(snapshot.real, data, snapshot.mode, owner, snapshot.attributes, temporary)
