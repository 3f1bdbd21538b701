"""Is a policy file trusted? By path and sha256, as direnv does it (DESIGN 2).

A policy that lies where an agent can write is a door: the agent edits it, the next run obeys. So
only bytes that a person has seen are obeyed. The store is one file for each policy path, holding
the text that was trusted, so that a change can be shown as a diff.
"""

import os
import stat

from bawn.digest import sha256_hex
from bawn.errors import TrustError
from bawn.facts.policy_file import Found
from bawn.typed import NamedTuple


class Trust(NamedTuple):
    """`previous` is the text trusted before, None where there was none."""

    trusted: bool
    previous: bytes | None
    why: str


def entry(state: str, path: str) -> str:
    """The store's file for a policy path."""
    return f"{state}/trust/{sha256_hex(path.encode(errors='surrogateescape'))}"


def status(found: Found, state: str, config: str) -> Trust:
    """Raises TrustError where the store itself cannot be believed."""
    if os.path.dirname(found.path) == os.path.realpath(config):
        return Trust(True, None, "it lies in your own config directory")
    previous = _previous(entry(state, found.path))
    if previous is None:
        return Trust(False, None, "it was never trusted")
    if previous == found.data:
        return Trust(True, previous, "it is as you trusted it")
    return Trust(False, previous, "it has changed since you trusted it")


def _previous(path: str) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TrustError(f"cannot read {path}: {error.strerror}") from None
    with os.fdopen(fd, "rb") as file:
        info = os.fstat(fd)
        if info.st_uid != os.getuid() or stat.S_IMODE(info.st_mode) & 0o022:
            raise TrustError(f"{path} can be written by others; it is not believed", f"rm {path}")
        return file.read()
