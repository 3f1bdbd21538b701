"""Finds and reads the policy file, once: the bytes that are hashed are the bytes that are parsed.

The nearest `bawn.toml` upwards from the working directory counts, and only that one: an untrusted
one nearer by never makes bawn fall through to one further out.
"""

import os
import stat

from bawn.digest import sha256_hex
from bawn.errors import PolicyError, UsageError
from bawn.typed import NamedTuple

NAME = "bawn.toml"
LIMIT = 1 << 20  # bytes


class Found(NamedTuple):
    """A policy file as read. `path` is absolute with every link resolved: the key of trust."""

    path: str
    data: bytes

    @property
    def text(self) -> str:
        """Raises PolicyError for what is not UTF-8."""
        try:
            return self.data.decode()
        except UnicodeDecodeError as error:
            raise PolicyError(f"{self.path} is not UTF-8: {error.reason}") from None

    @property
    def sha256(self) -> str:
        return sha256_hex(self.data)


def find(start: str, config: str, explicit: str | None) -> Found | None:
    """The policy that counts: `explicit`, else the nearest upwards of `start`, else `config`'s.

    Raises UsageError where `explicit` does not exist, PolicyError where a file may not be believed.
    """
    if explicit:
        if not os.path.lexists(explicit):
            raise UsageError(f"no policy file {explicit}", "bawn init")
        return _read(explicit)
    at = os.path.realpath(start)
    while True:
        candidate = os.path.join(at, NAME)
        if os.path.lexists(candidate):
            return _read(candidate)
        if at == "/":
            break
        at = os.path.dirname(at)
    own = os.path.join(config, NAME)
    return _read(own) if os.path.lexists(own) else None


def _read(path: str) -> Found:
    resolved = os.path.realpath(path)
    try:
        fd = os.open(resolved, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise PolicyError(f"cannot read the policy {path}: {error.strerror}") from None
    try:
        info = os.fstat(fd)
        _believable(resolved, info)
        data = b""
        while chunk := os.read(fd, LIMIT + 1 - len(data)):
            data += chunk
    finally:
        os.close(fd)
    if len(data) > LIMIT:
        raise PolicyError(f"the policy {resolved} is larger than {LIMIT} bytes")
    return Found(resolved, data)


def _believable(path: str, info: os.stat_result) -> None:
    """A regular file of this user (or root, or the person behind sudo) that others cannot write."""
    if not stat.S_ISREG(info.st_mode):
        raise PolicyError(f"the policy {path} is not a regular file")
    person = int(os.environ.get("SUDO_UID", "0") or 0) if os.getuid() == 0 else 0
    if os.getuid() != 0 and info.st_uid not in (os.getuid(), 0, person):
        raise PolicyError(
            f"the policy {path} belongs to uid {info.st_uid}, not to you (uid {os.getuid()})",
            fix="copy it, read it, and use the copy with --policy",
        )
    if info.st_mode & 0o002:
        raise PolicyError(
            f"the policy {path} can be written by anybody (mode {stat.S_IMODE(info.st_mode):04o})",
            fix=f"chmod o-w {path}",
        )
