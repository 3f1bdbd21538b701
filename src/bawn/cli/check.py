"""`bawn check`: what an agent can read, write and never see, as a tree, and what is wrong with it."""

import argparse
import json
import os
import sys

from bawn.cli.prepare import Wanted, prepare

HELP = "Show what an agent can read, write and never see, and what is wrong. Starts nothing."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", "-p", default="", help="the profile to check")
    parser.add_argument("--policy", default="", help="the policy file")
    parser.add_argument("--engine", default="", help="as if the profile had this engine")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="mounts and findings as JSON")
    form.add_argument("--sarif", action="store_true", help="findings as SARIF 2.1.0")
    parser.add_argument("--no-color", action="store_true", help="plain text on a terminal too")


def run(args: argparse.Namespace) -> int:
    """0: no finding of severity error; 1: at least one. A bad policy is 2 (PolicyError)."""
    # The command is not what is checked here: a profile without one is as good as any.
    ready = prepare(Wanted(args.policy, args.profile, args.engine), ("true",))
    plan = ready.plan
    if ready.found:
        from bawn.policy.lines import with_line

        text, path = ready.found.text, ready.found.path
        placed = (one._replace(place=with_line(one.place, text, path)) for one in plan.findings)
        plan = plan._replace(findings=tuple(placed))
    if args.json:
        parts = ("binds", "tmpfs", "guards", "creates", "overrides", "findings")
        data = plan.as_data()
        chosen = {name: data[name] for name in ("profile", "policy", "workdir", *parts)}
        print(json.dumps({"bawn_check": 1, **chosen}, indent=2))
    elif args.sarif:
        from bawn import __version__
        from bawn.plan.sarif import sarif

        print(json.dumps(sarif(plan.findings, __version__), indent=2))
    else:
        from bawn.plan.report import boundary

        for line in boundary(plan, colour=_colour(args.no_color)):
            print(line)
    return 1 if plan.errors else 0


def _colour(refused: bool) -> bool:
    """On a terminal, unless told otherwise. https://no-color.org"""
    if refused or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()
