"""`bawn why NAME[:PORT]`: the decision that the way out would make, with its reason."""

import argparse
import json

from bawn.cli.egress import registries
from bawn.cli.text import escape
from bawn.egress.addresses import Forbidden
from bawn.egress.decide import Decision, compiled, decide_authority
from bawn.egress.rules import RULES
from bawn.facts import dirs, policy_file
from bawn.plan.groups import expand, wants_registries
from bawn.plan.way_out import forbidden
from bawn.policy import parse
from bawn.policy.hosts import DEFAULT_PORT
from bawn.policy.model import Policy, Profile

HELP = "Whether a box may reach a host: the rule, the reason, and the line that allows it or would."
_NO_WAY = 'the profile has egress = "none": its box has no network at all'
_NOTES = {"none": [_NO_WAY], "proxy": [], "bridge": []}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("host", metavar="NAME[:PORT]", help=f"without a port: {DEFAULT_PORT}")
    parser.add_argument("--profile", "-p", default="", help="the profile that is asked about")
    parser.add_argument("--policy", default="", help="the policy file")
    parser.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    """0 allowed; 1 denied; 2 no such policy or profile. No DNS is asked, and no trust is needed."""
    found = policy_file.find(dirs.working(), dirs.observe().config, args.policy or None)
    policy = parse.parse_policy(found.text, found.path) if found else parse.default_policy()
    profile = parse.select(policy, args.profile or None)
    meaning = expand(profile.allow, registries(wants_registries(profile.allow)))
    never = Forbidden.of(forbidden(policy.wall))
    decision = decide_authority(compiled(meaning.lines, never), args.host, DEFAULT_PORT)
    notes = [*meaning.problems, *_NOTES[profile.egress]]
    data = {
        "bawn_why": 1,
        **decision._asdict(),
        "what": RULES[decision.rule].what,
        "profile": profile.name,
        "policy": policy.path,
        "egress": profile.egress,
        "notes": notes,
    }
    if args.json:
        print(json.dumps(data, indent=2))
    else:
        for line in _lines(decision, policy, profile, notes):
            print(escape(line).replace("\n", "\\n"))
    return 0 if decision.allowed else 1


def _lines(decision: Decision, policy: Policy, profile: Profile, notes: list[str]) -> list[str]:
    verdict = "allowed" if decision.allowed else "denied"
    where = f"profile.{profile.name} of {policy.path or 'the defaults'}"
    lines = [f"{verdict} {decision.rule} {RULES[decision.rule].what}", f"  why  {decision.reason}"]
    if decision.allowed:
        lines += [f"  by   {decision.by} in {where}"]
        lines += ["  then the addresses that DNS gives, and the TLS hello, must hold too"]
    elif decision.fix and not policy.path:
        lines += [f'  fix  bawn init; in its bawn.toml: egress = "proxy" and allow = ["{decision.fix}"]']
    elif decision.fix and profile.egress == "none":
        lines += [f'  fix  egress = "proxy" and allow = ["{decision.fix}"] in {where}']
    elif decision.fix:
        lines += [f'  fix  add "{decision.fix}" to allow in {where}']
    else:
        lines += [f"  fix  {RULES[decision.rule].fix}"]
    return lines + [f"  note {note}" for note in notes]
