"""Changes the trust store (`facts.trust` reads it), and holds the gate before a run."""

import os
from collections.abc import Callable

from bawn.errors import HostError, TrustError
from bawn.facts import trust as facts_trust
from bawn.facts.dirs import Dirs
from bawn.facts.policy_file import Found
from bawn.facts.trust import Trust

Ask = Callable[[Found, Trust], bool]


def require(found: Found, where: Dirs, ask: Ask | None) -> Found:
    """`found` with what it says, where a person trusts it. `ask` shows it and asks, where it can.

    Raises TrustError, and PolicyError for what was just trusted and does not load.
    """
    state = facts_trust.status(found, where.state, where.config)
    if state.trusted:
        return found._replace(toml=state.toml)
    fix = f"read it, then: bawn trust {found.name}"
    if ask is None:
        raise TrustError(f"the policy {found.name} is not trusted: {state.why}", fix)
    if not ask(found, state):
        raise TrustError(f"the policy {found.name} was not trusted", fix)
    return trust(found, where.state)


def trust(found: Found, state: str) -> Found:
    """Remembers these bytes as trusted for this path; `found` with what it says.

    Raises PolicyError for what does not load, TrustError for a store that others can write,
    HostError where it cannot be written.
    """
    from bawn.effects.atomic import write_atomic
    from bawn.policy.parse import parse_policy, toml

    data = toml(found.text, found.path)
    parse_policy(found.text, found.path, data)
    path = facts_trust.entry(state, found)
    try:
        for folder in (state, os.path.dirname(path)):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        facts_trust.check_store(state)
        write_atomic(path, facts_trust.packed(found, data), 0o600)
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}") from None
    return found._replace(toml=data)


def revoke(found: Found, state: str) -> bool:
    """Forgets a policy (its bytes do not matter); False where it was not trusted. Raises HostError."""
    try:
        os.unlink(facts_trust.entry(state, found))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise HostError(f"cannot remove the trust of {found.name}: {error.strerror}") from None
    return True
