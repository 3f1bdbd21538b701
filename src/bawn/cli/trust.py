"""`bawn trust [FILE]`: a person reads a policy and says that it may be obeyed."""

import argparse
import os
import sys

from bawn.errors import TrustError, UsageError
from bawn.facts import dirs, policy_file
from bawn.facts import trust as facts_trust
from bawn.facts.policy_file import Found

HELP = "Show a policy file (or what changed in it) and, when you say yes, trust it by its hash."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", help="the policy (default: the one that counts here)")
    parser.add_argument("--yes", action="store_true", help="do not ask (for provisioning scripts)")
    parser.add_argument("--show", action="store_true", help="only show, and say whether trusted")
    parser.add_argument("--revoke", action="store_true", help="trust it no longer")


def run(args: argparse.Namespace) -> int:
    """0 trusted (or revoked); 1 not trusted."""
    where = dirs.observe()
    found = policy_file.find(os.getcwd(), where.config, args.file)
    if found is None:
        raise UsageError("no policy file here or above", "bawn init")
    state = facts_trust.status(found, where.state, where.config)
    if args.revoke:
        from bawn.effects.trust import revoke

        known = revoke(found.path, where.state)
        print(f"{found.path}: {'trusted no longer' if known else 'was not trusted'}")
        return 0
    if not state.trusted or args.show:
        print(_shown(found, state))
    print(f"{found.path}: {state.why}")
    if state.trusted or args.show:
        return 0 if state.trusted else 1
    if not args.yes and not _asked(found):
        return 1
    _check(found)
    from bawn.effects.trust import trust

    trust(found, where.state)
    print(f"{found.path}: trusted")
    return 0


def require(found: object, where: object) -> None:
    """For verbs that obey a policy: asks a person at a terminal, else refuses. Raises TrustError."""
    assert isinstance(found, Found) and isinstance(where, dirs.Dirs)
    state = facts_trust.status(found, where.state, where.config)
    if state.trusted:
        return
    fix = f"read it, then: bawn trust {found.path}"
    if not (os.isatty(0) and os.isatty(2)):
        raise TrustError(f"the policy {found.path} is not trusted: {state.why}", fix)
    print(_shown(found, state), file=sys.stderr)
    print(f"bawn: {found.path}: {state.why}", file=sys.stderr)
    if not _asked(found):
        raise TrustError(f"the policy {found.path} was not trusted", fix)
    _check(found)
    from bawn.effects.trust import trust

    trust(found, where.state)


def _check(found: Found) -> None:
    """What does not load is not trusted. Raises PolicyError."""
    from bawn.policy.parse import parse_policy

    parse_policy(found.text, found.path)


def _asked(found: Found) -> bool:
    if not os.isatty(0):
        print("bawn: no terminal to ask at; --yes trusts without asking", file=sys.stderr)
        return False
    print(f"Obey {found.path} as shown? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _shown(found: Found, state: facts_trust.Trust) -> str:
    """The text, or the diff; control characters escaped, since an agent may have written them."""
    if state.previous is None or state.previous == found.data:
        return escape(found.data.decode(errors="backslashreplace"))
    import difflib

    old, new = (b.decode(errors="backslashreplace") for b in (state.previous, found.data))
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), "as trusted", "as it is now", lineterm=""
    )
    return escape("\n".join(lines))


def escape(text: str) -> str:
    """Text of unknown origin, safe on a terminal: everything unprintable but line ends escaped."""
    return "".join(c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)
