"""`bawn trust [FILE]`: a person reads a policy and says that it may be obeyed."""

import argparse
import os
import sys

from bawn.cli.text import escape
from bawn.errors import UsageError
from bawn.facts import dirs, policy_file
from bawn.facts import trust as facts_trust
from bawn.facts.policy_file import Found

HELP = "Show a policy file (or what changed in it) and, when you say yes, trust it by its hash."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", help="the policy (default: the one that counts here)")
    parser.add_argument("--yes", action="store_true", help="do not ask (for provisioning scripts)")
    parser.add_argument("--show", action="store_true", help="only show it, and say whether trusted")
    parser.add_argument("--revoke", action="store_true", help="trust it no longer")


def run(args: argparse.Namespace) -> int:
    """0 trusted (or revoked); 1 not trusted; 2 no such policy, or one that does not load."""
    where = dirs.observe()
    file = args.file
    if file and os.path.isdir(file):
        file = os.path.join(file, policy_file.NAME)
    if args.revoke:
        return _revoke(file, where)
    found = policy_file.find(dirs.working(), where.config, file)
    if found is None:
        raise UsageError("no policy file here or above", "bawn init")
    state = facts_trust.status(found, where.state, where.config)
    if args.show or not state.trusted:
        print(shown(found, state))
    print(escape(f"{found.name}: {state.why}"))
    if args.show or state.trusted:
        return 0 if state.trusted else 1

    from bawn.effects.trust import trust
    from bawn.policy.parse import parse_policy

    parse_policy(found.text, found.path)  # nobody is asked about what does not load
    if not args.yes and not _answer(found):
        return 1
    trust(found, where.state)
    print(escape(f"{found.name}: trusted"))
    return 0


def _revoke(file: str | None, where: dirs.Dirs) -> int:
    """Also of a file that is gone, or can no longer be read."""
    from bawn.effects.trust import revoke

    if file and not os.path.exists(file):
        found = Found(os.path.realpath(file), b"")
    else:
        found = policy_file.find(dirs.working(), where.config, file) or Found("", b"")
    if not found.path:
        raise UsageError("no policy file here or above", "bawn trust --revoke FILE")
    known = revoke(found, where.state)
    print(escape(f"{found.name}: {'trusted no longer' if known else 'was not trusted'}"))
    return 0


def ask(found: Found, state: facts_trust.Trust) -> bool:
    """For verbs that obey a policy, at a terminal: shows it on stderr and asks."""
    from bawn.policy.parse import parse_policy

    parse_policy(found.text, found.path)
    print(shown(found, state), file=sys.stderr)
    print(escape(f"bawn: {found.name}: {state.why}"), file=sys.stderr)
    return _answer(found)


def _answer(found: Found) -> bool:
    """Yes is an answer that a person typed: never an end of file, nor a pipe."""
    if not os.isatty(0):
        print("bawn: no terminal to ask at; --yes trusts without asking", file=sys.stderr)
        return False
    print(escape(f"Obey {found.name} as shown? [y/N] "), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def shown(found: Found, state: facts_trust.Trust) -> str:
    """The whole text, or a diff against what was trusted before. Safe on a terminal."""
    now = found.data.decode(errors="backslashreplace")
    if state.previous is None or state.previous == found.data:
        return escape(now.removesuffix("\n"))
    import difflib

    before = state.previous.decode(errors="backslashreplace")
    lines = difflib.unified_diff(
        before.split("\n"), now.split("\n"), "as trusted", "as it is now", lineterm=""
    )
    return escape("\n".join(lines))
