"""`bawn diff [STEP]`: what a change of the ledger did to its files."""

import argparse
import difflib

from bawn.cli.rollback import latest, place
from bawn.cli.text import escape
from bawn.effects import journal
from bawn.effects.snapshot import look
from bawn.errors import HostError
from bawn.facts import dirs

HELP = "Show each file of a change as it was before and as it is now."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "step", nargs="?", default="", help="7, or 7.2 for its second step (default: the last)"
    )


def run(args: argparse.Namespace) -> int:
    """0 where the files are as bawn wrote them (or restored); 1 where one changed since."""
    state = dirs.observe().state
    number, step = place(args.step)
    last = None if number else latest(state)
    if not number and last is None:
        print("no change is in force")
        return 0
    entry = last or journal.load(state, number)
    if not entry.in_force:
        print(escape(f"change {entry.number} ({entry.title}) was rolled back: nothing of it is left"))
        return 0
    wrong = False
    for at, kept in enumerate(entry.steps, 1):
        if step in (0, at):
            wrong = _show(state, entry, at, kept) or wrong
    return int(wrong)


def _show(state: str, entry: journal.Entry, at: int, kept: journal.Kept) -> bool:
    """True where the file is not as bawn left it."""
    before = b""
    if kept.before.exists and not kept.undone:
        path = journal.copy_of(state, entry.number, at)
        try:
            with open(path, "rb") as file:
                before = file.read()
        except OSError as error:
            raise HostError(f"cannot read {path}: {error.strerror}") from None
    now, data = look(kept.path)
    if kept.undone:
        print(escape(f"{kept.path}: rolled back"))
        return False
    then, since = (part.decode(errors="backslashreplace").splitlines() for part in (before, data or b""))
    head = f"{kept.path} (before change {entry.number})"
    for line in difflib.unified_diff(then, since, head, f"{kept.path} (now)", lineterm=""):
        print(escape(line))
    expected = kept.after
    if not kept.before.exists:  # group and ACL of a new file came from its directory
        expected = expected._replace(uid=now.uid, gid=now.gid, attributes=now.attributes)
    changed = expected.differs(now)
    if changed:
        print(escape(f"{kept.path} is not as bawn wrote it: {changed}"))
    return bool(changed)
