"""`bawn history`: the changes that bawn made to this machine, from the ledger."""

import argparse
import json

from bawn.effects import journal
from bawn.facts import dirs

HELP = "The changes that bawn made to this machine: when, what, and how each ended. Oldest first."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, default=20, help="how many changes (default 20)")
    parser.add_argument("--json", action="store_true", help="one JSON object a change")


def run(args: argparse.Namespace) -> int:
    """0: all is applied or restored; 1: a change was interrupted, or could not be undone."""
    state = dirs.observe().state
    busy = journal.busy(state)
    found = journal.entries(state)
    for entry in found[-args.n :] if args.n > 0 else []:
        if args.json:
            print(json.dumps(_data(entry, busy), ensure_ascii=False))
        else:
            for line in rows(entry, busy):
                print(line)
    open_ones = [entry for entry in found if entry.state in (journal.BEGUN, journal.FAILED)]
    return 1 if open_ones and not busy else 0


def outcome(entry: journal.Entry, busy: bool) -> str:
    """How it ended, in a word or two."""
    if entry.state == journal.BEGUN:
        return "in progress" if busy else "interrupted"
    if entry.state == journal.APPLIED and any(kept.undone for kept in entry.steps):
        return "partly rolled back"
    return entry.state


def rows(entry: journal.Entry, busy: bool) -> list[str]:
    """The change, then its steps: "7.2" is the second step of change 7."""
    from bawn.cli.text import escape

    head = f"{entry.number}  {entry.time}  {outcome(entry, busy)}: {entry.title}"
    lines = [head + (f" ({entry.told})" if entry.told else "")]
    for number, kept in enumerate(entry.steps, 1):
        undone = " (undone)" if kept.undone and entry.in_force else ""
        lines.append(f"   {entry.number}.{number}  {kept.path}: {kept.does}{undone}")
    if outcome(entry, busy) in ("interrupted", journal.FAILED):
        lines.append(f"   fix: bawn rollback {entry.number}")
    return [escape(line).replace("\n", " ") for line in lines]


def _data(entry: journal.Entry, busy: bool) -> dict[str, object]:
    steps = [
        {"path": kept.path, "does": kept.does, "before": kept.before.sha256, "after": kept.after.sha256,
         "undone": kept.undone}
        for kept in entry.steps
    ]  # fmt: skip
    return {
        "change": entry.number,
        "time": entry.time,
        "kind": entry.kind,
        "title": entry.title,
        "outcome": outcome(entry, busy),
        "told": entry.told,
        "steps": steps,
    }
