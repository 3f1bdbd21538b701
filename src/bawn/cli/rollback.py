"""`bawn rollback [STEP]`: takes a change of the ledger back, to the byte."""

import argparse

from bawn.cli.text import escape
from bawn.effects import journal, ledger
from bawn.errors import UsageError
from bawn.facts import dirs
from bawn.facts.readers import running

HELP = "Put the exact old state of a change back: bytes, mode, owner, attributes, links."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "step", nargs="?", default="", help="7, or 7.2 for its second step (default: the last)"
    )
    parser.add_argument("--force", action="store_true", help="although a file changed since; a copy is kept")


def run(args: argparse.Namespace) -> int:
    """0 restored, or nothing to undo; 1 not, or a running program still has the other state."""
    state = dirs.observe().state
    number, step = place(args.step)
    if not number:
        last = latest(state)
        if last is None:
            print("nothing to undo: no change is in force")
            return 0
        number = last.number
    return take_back(state, number, step, args.force)


def take_back(state: str, number: int, step: int, force: bool) -> int:
    """One change, and what a person should know about it."""
    entry = ledger.rollback(state, number, step, force)
    if entry is None:
        before = journal.load(state, number)
        what = f"step {number}.{step}" if step else f"change {number}"
        print(escape(f"nothing to undo: {what} ({before.title}) was rolled back before, or never took hold"))
        return 0
    done = [kept for at, kept in enumerate(entry.steps, 1) if step in (0, at)]
    for kept in done:
        print(escape(f"{kept.path}: {journal.RESTORED}"))
    stale = running(entry.readers)
    for line in stale:
        print(escape(f"still running with what was there before: {line}; restart it"))
    return 1 if stale else 0


def latest(state: str) -> journal.Entry | None:
    """The last change that is in force, or was interrupted."""
    return next((entry for entry in reversed(journal.entries(state)) if entry.in_force), None)


def place(text: str) -> tuple[int, int]:
    """ "7" is (7, 0), "7.2" is (7, 2), "" is (0, 0). Raises UsageError."""
    number, _, step = text.partition(".")
    if not text:
        return 0, 0
    if not (number.isdecimal() and int(number) and (step.isdecimal() or "." not in text)):
        raise UsageError(f"{text!r} is no change; wanted a number as in `bawn history`, 7 or 7.2")
    return int(number), int(step or 0)
