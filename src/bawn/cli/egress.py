"""`bawn egress groups`: what each @group of an allow-list means on this machine."""

import argparse
import json
import os
from collections.abc import Iterable

from bawn.cli.text import escape
from bawn.facts.model import RegistryFact
from bawn.plan.groups import REGISTRIES, groups

HELP = "What the @groups of an allow-list mean on this machine."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="what", required=True, metavar="groups")
    one = verbs.add_parser("groups", help="each group, its hosts, and where they are known from")
    one.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    """0 always: a client that is not set up here is no fault until a policy names its group."""
    found = groups(registries(REGISTRIES))
    if args.json:
        rows = [{**one._asdict(), "members": [m._asdict() for m in one.members]} for one in found]
        print(json.dumps({"bawn_egress_groups": 1, "groups": rows}, indent=2))
        return 0
    for group in found:
        lines = [f"{group.name}  (from {group.source})"]
        lines += [f"  {member.host}  {member.why}" for member in group.members]
        if group.problem:
            lines += [f"  problem {group.problem}", f"  fix     {group.fix}"]
        for line in lines:
            print(escape(line).replace("\n", "\\n"))
    return 0


def registries(names: Iterable[str]) -> tuple[RegistryFact, ...]:
    """The facts of these groups; nothing is looked at where there are none."""
    wanted = tuple(names)
    if not wanted:
        return ()
    from bawn.effects import process
    from bawn.facts import registries as facts

    return facts.observe(wanted, facts.Machine(os.path.expanduser("~"), os.environ, process.run))
