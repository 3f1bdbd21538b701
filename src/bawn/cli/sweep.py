"""`bawn sweep`: removes what killed runs left behind."""

import argparse

from bawn.effects import sweep
from bawn.facts import dirs, host

HELP = "Remove the files, control groups and containers of runs whose bawn is dead."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help="only speak of what would not go")


def run(args: argparse.Namespace) -> int:
    """0 nothing is left; 1 something would not go."""
    swept = sweep.sweep(dirs.observe().runtime, host.observe())
    for run_id in () if args.quiet else swept.runs:
        print(f"swept {run_id}")
    for path in swept.stuck:
        print(f"cannot remove {path}")
    return 1 if swept.stuck else 0
