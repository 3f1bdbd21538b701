"""`bawn wall apply|status|verify|remove`: the wall of bridge mode."""

import argparse
import json
import sys
import time

from bawn.cli.text import escape
from bawn.effects import wall, wall_boot, wall_probe
from bawn.errors import HostError, UsageError
from bawn.facts import dirs, policy_file
from bawn.plan.model import Finding
from bawn.plan.wall import DROPS, Wall, never, ruleset
from bawn.plan.wall_rules import holds
from bawn.policy import parse

HELP = "The wall of bridge mode: what boxes of engine docker may reach when they have a network."
_EVERY = 1.0  # seconds between looks of --follow
_VERBS = {
    "apply": "load the wall, or find it loaded (as root)",
    "status": "what is loaded against what was applied, and what each rule has dropped",
    "verify": "the same, and real packets from a throw-away namespace",
    "remove": "take away what apply has loaded, and nothing else",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="what", required=True, metavar="|".join(_VERBS))
    made = {name: verbs.add_parser(name, help=text, description=text) for name, text in _VERBS.items()}
    for one in made.values():
        one.add_argument("--json", action="store_true")
    for name in ("apply", "status", "verify"):
        made[name].add_argument("--policy", default="", help="whose [wall] counts (default: as bawn why)")
    made["apply"].add_argument("--boot", action="store_true", help="write a boot unit too")
    made["apply"].add_argument("--show", action="store_true", help="only show the rules; changes nothing")
    made["apply"].add_argument(
        "--recorded", action="store_true", help="what was applied last, whatever the policy says now"
    )
    made["status"].add_argument("--follow", action="store_true", help="look every second, until it is not so")
    made["remove"].add_argument("--force", action="store_true", help="although runs are behind it")


def run(args: argparse.Namespace) -> int:
    """0 it holds (or is removed); 1 it does not; 2 usage or policy."""
    return {"apply": _apply, "status": _status, "verify": _verify, "remove": _remove}[args.what](args)


def _wanted(args: argparse.Namespace, where: str) -> Wall:
    if getattr(args, "recorded", False):
        if args.policy:
            raise UsageError("--recorded or --policy, not both")
        before = wall.recorded(where)
        if before is None:
            raise HostError("no wall was applied here", "sudo bawn wall apply")
        return before
    found = policy_file.find(dirs.working(), dirs.observe().config, args.policy or None)
    policy = parse.parse_policy(found.text, found.path) if found else parse.default_policy()
    return wall.observe(never(policy.wall))


def _apply(args: argparse.Namespace) -> int:
    where = wall.place(dirs.observe().runtime)
    wanted = _wanted(args, where)
    if args.show:
        print(ruleset(wanted), end="")
        return 0
    boot = wall_boot.files(wanted, wall_boot.bawn_program(sys.argv[0])) if args.boot else {}
    changed, status = wall.apply(where, wanted)
    booted = wall_boot.install(boot) if boot else False
    did = "applied and verified" if changed else "nothing to change: it is loaded as planned"
    notes = (
        ["the boot unit is written and enabled" if booted else "the boot unit is as planned"] if boot else []
    )
    return _say(args, status, status.findings, [did, *notes], changed=changed or booted)


def _status(args: argparse.Namespace) -> int:
    where = wall.place(dirs.observe().runtime)
    status = wall.status(where, _wanted(args, where))
    findings = (*status.findings, *_boot(status.wall))
    code = _say(args, status, findings, [], counters=True)
    if not args.follow or code:
        return code
    watch = wall.Watch(where)
    while not (drift := watch.check()):
        time.sleep(_EVERY)
    return _say(args, status._replace(findings=drift), drift, ["it has changed"])


def _verify(args: argparse.Namespace) -> int:
    where = wall.place(dirs.observe().runtime)
    status = wall.status(where, _wanted(args, where))
    findings = (*status.findings, *_boot(status.wall), *wall_probe.probe(where, status.holds))
    if status.wall is not None and holds(findings):
        wall.verified(where)
    return _say(args, status, findings, ["packets were sent, over IPv4 and IPv6"])


def _boot(applied: Wall | None) -> tuple[Finding, ...]:
    if applied is None:
        return ()
    return wall_boot.check(wall_boot.files(applied, sys.argv[0]))


def _remove(args: argparse.Namespace) -> int:
    where = wall.place(dirs.observe().runtime)
    gone = wall.remove(where, args.force)
    unit = wall_boot.remove()
    lines = [
        "removed: the tables, the second layer and its record" if gone else "nothing of the wall was loaded"
    ]
    lines += ["removed: the boot unit"] if unit else []
    print(json.dumps({"bawn_wall": 1, "removed": gone, "boot": unit}) if args.json else "\n".join(lines))
    return 0


def _say(
    args: argparse.Namespace,
    status: wall.Status,
    findings: tuple[Finding, ...],
    notes: list[str],
    *,
    counters: bool = False,
    changed: bool = False,
) -> int:
    """Prints it all; the exit code."""
    good = holds(findings)
    if args.json:
        data = {
            "bawn_wall": 1,
            "holds": good,
            "changed": changed,
            "ways": [way._asdict() for way in status.ways],
            "counters": dict(status.counters),
            "findings": [one._asdict() for one in findings],
        }
        print(json.dumps(data, indent=2))
        return 0 if good else 1
    lines = list(notes)
    for one in findings:
        lines.append(f"{one.severity:<7} {one.rule} {one.place}: {one.message}")
        lines += [f"        fix: {one.fix}"] if one.fix else []
    lines += [f"way     run {w.run}: {w.bridge} -> tcp {w.address}:{w.port}" for w in status.ways]
    if counters:
        packets = dict(status.counters)
        lines += [f"dropped {packets.get(d.counter, 0):>6}  {d.what}" for d in DROPS if d.counter in packets]
    lines.append("the wall holds" if good else "the wall does not hold")
    for line in lines:
        print(escape(line).replace("\n", "\\n"))
    sys.stdout.flush()
    return 0 if good else 1
