"""Changes the trust store (`facts.trust` reads it)."""

import os

from bawn.effects.atomic import write_atomic
from bawn.errors import HostError
from bawn.facts.policy_file import Found
from bawn.facts.trust import entry


def trust(found: Found, state: str) -> None:
    """Remembers these bytes as trusted for this path. Raises HostError."""
    path = entry(state, found.path)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_atomic(path, found.data, 0o600)
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}") from None


def revoke(path: str, state: str) -> bool:
    """Forgets a path; False where it was not trusted. Raises HostError."""
    try:
        os.unlink(entry(state, path))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise HostError(f"cannot remove the trust of {path}: {error.strerror}") from None
    return True
