"""Finds and reads the policy file, once: the bytes that are hashed are the bytes that are parsed.

The nearest `bawn.toml` upwards from the working directory counts, and only that one: an untrusted or
unreadable one nearer by never makes bawn fall through to one further out. No environment variable
names a policy: what an agent can leave in a start-up file would otherwise choose the next one.
"""

import os
import stat

from bawn.digest import sha256_hex
from bawn.errors import PolicyError, UsageError
from bawn.typed import Any, NamedTuple

NAME = "bawn.toml"
LIMIT = 1 << 20  # bytes; the largest policy of 500 mounts has 60 KiB


class Found(NamedTuple):
    """A policy file as read."""

    path: str  # absolute, every link resolved; the key of trust
    data: bytes
    link: str = ""  # where it was found, if that is a symbolic link to `path`: part of the key
    toml: dict[str, Any] | None = None  # what `data` says, where that is known (facts.trust)

    @property
    def name(self) -> str:
        """What a person calls it."""
        return self.link or self.path

    @property
    def text(self) -> str:
        """Raises PolicyError for what is not UTF-8."""
        try:
            return self.data.decode()
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            raise PolicyError(f"{self.name}:{line}: not UTF-8: {error.reason}") from None

    @property
    def sha256(self) -> str:
        return sha256_hex(self.data)


def find(start: str, config: str, explicit: str | None) -> Found | None:
    """The policy that counts: `explicit`, else the nearest upwards of `start`, else `config`'s.

    `config` is bawn's own config directory. Raises UsageError where `explicit` does not exist,
    PolicyError where a file may not be believed or where it cannot be told whether there is one.
    """
    if explicit:
        if not _is_there(explicit):
            raise UsageError(f"no policy file {explicit}", "bawn init")
        return read(explicit)
    at = os.path.realpath(start)
    while True:
        candidate = os.path.join(at, NAME)
        if _is_there(candidate):
            return read(candidate)
        if at == "/":
            break
        at = os.path.dirname(at)
    own = os.path.join(config, NAME)
    return read(own) if _is_there(own) else None


def _is_there(path: str) -> bool:
    """A dangling link is there. Raises PolicyError where that cannot be seen."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise PolicyError(
            f"cannot see whether there is a policy {path}: {error.strerror}",
            fix="name the policy with --policy FILE",
        ) from None
    return True


def read(path: str) -> Found:
    """One policy file. Raises PolicyError where it cannot be read or may not be believed."""
    folder, name = os.path.split(path)
    place = os.path.join(os.path.realpath(folder or "."), name)
    resolved = os.path.realpath(place)
    try:
        data = _read(resolved)
    except OSError as error:
        raise PolicyError(f"cannot read the policy {path}: {error.strerror}") from None
    if len(data) > LIMIT:
        raise PolicyError(f"the policy {path} is larger than {LIMIT} bytes")
    return Found(resolved, data, place if place != resolved else "")


def _read(path: str) -> bytes:
    """At most one byte more than LIMIT. Raises PolicyError, OSError."""
    folder, name = os.path.split(path)
    above = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(name, flags, dir_fd=above)
        try:
            check(path, os.fstat(fd), os.fstat(above))
            data = b""
            while chunk := os.read(fd, LIMIT + 1 - len(data)):
                data += chunk
            return data
        finally:
            os.close(fd)
    finally:
        os.close(above)


def check(path: str, info: os.stat_result | None, folder: os.stat_result) -> None:
    """A regular file of the right owner that nobody else can write or replace. Raises PolicyError.

    Without `info`: whether a file made there by this user would be one.
    """
    if folder.st_mode & stat.S_IWOTH:
        raise PolicyError(
            f"the policy {path} lies in a directory that anybody can write "
            f"(mode {stat.S_IMODE(folder.st_mode):04o})",
            fix=f"move it, or: chmod o-w {os.path.dirname(path)}",
        )
    if info is None:
        return
    if not stat.S_ISREG(info.st_mode):
        raise PolicyError(f"the policy {path} is not a regular file")
    if info.st_uid not in _owners(folder):
        raise PolicyError(
            f"the policy {path} belongs to uid {info.st_uid}, not to you (uid {os.getuid()})",
            fix="copy it, read it, and use the copy with --policy",
        )
    if info.st_mode & stat.S_IWOTH:
        raise PolicyError(
            f"the policy {path} can be written by anybody (mode {stat.S_IMODE(info.st_mode):04o})",
            fix=f"chmod o-w {path}",
        )


def _owners(folder: os.stat_result) -> set[int]:
    """This user and root. Root acts for others: the person behind sudo, the owner of the directory."""
    if os.getuid() != 0:
        return {os.getuid(), 0}
    person = os.environ.get("SUDO_UID", "")
    return {0, folder.st_uid, *([int(person)] if person.isdigit() and person.isascii() else [])}
