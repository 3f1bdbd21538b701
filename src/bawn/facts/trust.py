"""Is a policy file trusted? By its path and its bytes, as direnv does it (DESIGN 2).

A policy that lies where an agent can write is a door: the agent edits it, the next run obeys. So
only bytes that a person has seen are obeyed. The store is one file for each policy, `trust/HASH` in
bawn's state directory, with the text that was trusted, so that a change can be shown as a diff, and
with what the text says, so that a run need not load a TOML parser (15 ms) to read it again.
"""

import json
import os
import stat

from bawn.digest import sha256_hex
from bawn.errors import TrustError
from bawn.facts.policy_file import Found
from bawn.typed import Any, NamedTuple

FORMAT = 1


class Trust(NamedTuple):
    """Whether `bawn run` may obey a policy, and why (not)."""

    trusted: bool
    previous: bytes | None  # the text trusted before, None where there was none
    why: str
    toml: dict[str, Any] | None = None  # what a trusted text says, where the store holds it


def entry(state: str, found: Found) -> str:
    """The store's file for a policy. A link to one is trusted as that link: an agent can make it
    point to any policy that is trusted elsewhere."""
    key = f"{found.link}\0{found.path}" if found.link else found.path
    return f"{state}/trust/{sha256_hex(key.encode(errors='surrogateescape'))}"


def status(found: Found, state: str, config: str) -> Trust:
    """Raises TrustError where the store itself cannot be believed."""
    if not found.link and _own(os.path.dirname(found.path), config):
        return Trust(True, None, "it lies in your own config directory")
    check_store(state)
    kept = _entry(entry(state, found))
    if kept is None:
        return Trust(False, None, "it was never trusted")
    text, toml = kept
    if text == found.data:
        return Trust(True, text, "it is as you trusted it", toml)
    return Trust(False, text, "it has changed since you trusted it")


def _own(folder: str, config: str) -> bool:
    """bawn's config directory, where nobody but this user can write."""
    if folder != os.path.realpath(config):
        return False
    info = os.stat(folder)
    return info.st_uid == os.getuid() and not info.st_mode & 0o022


def check_store(state: str) -> None:
    """Raises TrustError where somebody else could have written the store."""
    for path in (state, f"{state}/trust"):
        try:
            info = os.stat(path, follow_symlinks=path == state)
        except FileNotFoundError:
            return
        except OSError as error:
            raise TrustError(f"cannot read {path}: {error.strerror}") from None
        if not stat.S_ISDIR(info.st_mode):
            raise TrustError(f"{path} is not a directory", f"rm {path}")
        _only_mine(path, info)


def _only_mine(path: str, info: os.stat_result) -> None:
    if info.st_uid != os.getuid() or info.st_mode & 0o022:
        raise TrustError(
            f"{path} can be written by others (owner {info.st_uid}, mode "
            f"{stat.S_IMODE(info.st_mode):04o}); what it says of trust is not believed",
            f"look who wrote it; then: chown {os.getuid()} {path} && chmod go-w {path}",
        )


def _entry(path: str) -> tuple[bytes, dict[str, Any]] | None:
    """The text and its data; None where there is no entry. Raises TrustError for a damaged one."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TrustError(f"cannot read {path}: {error.strerror}", f"rm {path}") from None
    with os.fdopen(fd, "rb") as file:
        _only_mine(path, os.fstat(fd))
        data = file.read()
    try:
        kept = json.loads(data)
        text = kept["text"].encode()
        whole = kept["bawn_trust"] == FORMAT and kept["sha256"] == sha256_hex(text)
        toml = kept["toml"] if whole else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        toml = None
    if not isinstance(toml, dict):
        raise TrustError(f"{path} is damaged: it trusts nothing", f"rm {path}, and: bawn trust")
    return text, toml


def packed(found: Found, toml: dict[str, Any]) -> bytes:
    """What `entry` holds for a policy that says `toml`."""
    kept = {
        "bawn_trust": FORMAT,
        "path": found.path,
        "link": found.link,
        "sha256": found.sha256,
        "text": found.text,
        "toml": toml,
    }
    return json.dumps(kept).encode()
