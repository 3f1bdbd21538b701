"""`bawn egress log|status|reload|groups`: the one way out, looked at from the host."""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable

from bawn.cli.text import escape
from bawn.errors import BawnError, HostError, UsageError
from bawn.evidence import passages, runlog
from bawn.evidence.events import Passage
from bawn.facts import dirs, policy_file
from bawn.facts.model import RegistryFact
from bawn.plan.groups import REGISTRIES, groups, wants_registries
from bawn.plan.model import EgressPlan
from bawn.plan.way_config import Config, write_config
from bawn.plan.way_out import way_out
from bawn.policy import parse
from bawn.policy.model import Policy

HELP = "The one way out: what was asked and decided, the proxies that run, what the @groups mean here."
_EVERY = 0.2  # seconds between two looks of --follow


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="what", required=True, metavar="|".join(_VERBS))
    made = {name: verbs.add_parser(name, help=text, description=text) for name, (text, _) in _VERBS.items()}
    log = made["log"]
    log.add_argument("--follow", "-f", action="store_true", help="go on, until ^C")
    log.add_argument("--denied", action="store_true", help="only what was denied or failed")
    log.add_argument("--run", default="", help="of one run (its id, or the start of it)")
    log.add_argument("-n", type=int, default=40, help="how many of the past (default 40; 0: all)")
    for name in ("status", "reload"):
        made[name].add_argument("--run", default="", help="one run (its id, or the start of it)")
    made["reload"].add_argument("--policy", default="", help="the policy file (default: as bawn run)")
    for one in made.values():
        one.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    """0; 1 where a proxy did not answer or kept its old policy; 2 usage or policy."""
    return _VERBS[args.what][1](args)


# --- log ---


def _log(args: argparse.Namespace) -> int:
    state = dirs.observe().state
    lines = _read(state, 0)
    wanted = [one for one in lines.found if _is_wanted(one, args)]
    for one in wanted[-args.n if args.n > 0 else 0 :]:
        _show(one, args.json)
    if lines.unreadable:
        print(f"{lines.unreadable} lines of {passages.log_of(state)} cannot be read")
    try:
        while args.follow:
            time.sleep(_EVERY)
            lines = _read(state, lines.at)
            for one in lines.found:
                if _is_wanted(one, args):
                    _show(one, args.json)
    except KeyboardInterrupt:
        pass
    return 0


def _read(state: str, at: int) -> passages.Lines:
    try:
        return passages.read(state, at)
    except OSError as error:
        raise HostError(f"cannot read {passages.log_of(state)}: {error.strerror}") from None


def _is_wanted(one: Passage, args: argparse.Namespace) -> bool:
    return one.run.startswith(args.run) and not (args.denied and one.verdict == "allowed")


def _show(one: Passage, as_json: bool) -> None:
    if as_json:
        print(json.dumps(one._asdict(), ensure_ascii=False), flush=True)
        return
    head = f"{one.time} {one.run} {one.profile} {one.verdict} {one.rule} {one.way} {one.name}:{one.port}"
    if one.verdict == "allowed":
        tail = f"by {one.by}, {one.sent} B out, {one.received} B in, {one.duration_ms / 1000:.2f} s"
    else:
        tail = one.reason + (f'; allow = ["{one.fix}"] would let it' if one.fix else "")
    print(escape(f"{head}  {tail}").replace("\n", "\\n"), flush=True)


# --- the proxies that run ---


def _of_runs(args: argparse.Namespace, line: Callable[[str, str], bytes]) -> int:
    """Asks each proxy, and prints what it answers; 1 where one does not, or refuses."""
    from bawn.effects import way_control

    runtime = dirs.observe().runtime
    answers, code = [], 0
    for run in (run for run in way_control.runs(runtime) if run.startswith(args.run)):
        try:
            status = way_control.ask(runtime, run, b"status")
            words = line(run, str(status.get("profile", "")))
            answer = status if words == b"status" else {"run": run, **way_control.ask(runtime, run, words)}
        except BawnError as error:
            answer = {"run": run, "error": error.message}
        code |= "error" in answer
        answers.append(answer)
    if args.json:
        print(json.dumps({f"bawn_egress_{args.what}": 1, "runs": answers}, indent=2))
        return code
    for answer in answers:
        print(escape("  ".join(f"{key} {value}" for key, value in answer.items())).replace("\n", "\\n"))
    if not answers:
        print("no run has a way out now")
    return code


def _status(args: argparse.Namespace) -> int:
    return _of_runs(args, lambda run, profile: b"status")


def _reload(args: argparse.Namespace) -> int:
    """What is trusted and loads replaces what is in force; nothing else does. Raises BawnError."""
    from bawn.effects import trust

    where = dirs.observe()
    found = policy_file.find(dirs.working(), where.config, args.policy or None)
    if found is None:
        raise UsageError("no bawn.toml found: runs with the defaults have nothing to reload", "bawn init")
    found = trust.require(found, where, None)
    policy = parse.parse_policy(found.text, found.path, found.toml)
    of = {e["run"]: e.get("policy") for e in runlog.read(where.state) if e.get("event") == "started"}

    def line(run: str, profile: str) -> bytes:
        if of.get(run) != policy.path:
            raise HostError(f"it was started with {of.get(run) or 'the defaults'}, not with {policy.path}")
        return b"reload " + write_config(Config(run, profile, _plan(policy, profile))).strip()

    return _of_runs(args, line)


def _plan(policy: Policy, name: str) -> EgressPlan:
    """What passes for that profile now; nothing, where it has no way out any more. Raises PolicyError."""
    profile = parse.select(policy, name)
    plan = way_out(policy, profile, registries(wants_registries(profile.allow))).egress
    return EgressPlan("proxy", (), plan.deny) if profile.egress == "none" else plan


# --- groups ---


def _groups(args: argparse.Namespace) -> int:
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


_VERBS: dict[str, tuple[str, Callable[[argparse.Namespace], int]]] = {
    "log": ("each decision: what was asked, by which run, which line allows it or would", _log),
    "status": ("the proxies of the runs of now: connections, decisions so far", _status),
    "reload": ("hand the policy, if trusted and valid, to the runs that were started with it", _reload),
    "groups": ("each group, its hosts, and where they are known from", _groups),
}
