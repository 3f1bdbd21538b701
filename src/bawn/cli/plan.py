"""`bawn plan`: everything a run would do, before it does."""

import argparse
import json

from bawn.cli.prepare import Prepared, Wanted, prepare
from bawn.plan.steps import steps
from bawn.typed import Protocol

HELP = "Show the mounts, limits, environment and bundle or argv of a run. Starts nothing."


class Described(Protocol):
    """A part of a plan."""

    def describe(self) -> str: ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", "-p", default="")
    parser.add_argument("--policy", default="")
    parser.add_argument("--engine", default="")
    parser.add_argument("--json", action="store_true", help="the plan in canonical JSON (RFC 8785)")
    parser.add_argument("--bundle", action="store_true", help="the OCI bundle or docker argv alone")
    parser.add_argument("--show-defaults", action="store_true", help="every field of the profile")
    parser.add_argument("command", nargs="*", help="the command, after --")


def run(args: argparse.Namespace) -> int:
    """0 it could start; 1 the plan holds an error."""
    wanted = Wanted(args.policy, args.profile, args.engine)
    ready = prepare(wanted, tuple(args.command))
    if args.json:
        from bawn.plan.model import canonical

        print(canonical({**ready.plan.as_data(), "id": ready.plan.id}).decode())
    elif args.bundle:
        print(_bundle(ready))
    elif args.show_defaults:
        from bawn.policy.show import show_profile

        print(show_profile(ready.profile))
    else:
        for line in describe(ready):
            print(line)
    return 1 if ready.plan.errors else 0


def describe(ready: Prepared) -> list[str]:
    """The plan as a person reads it."""
    plan = ready.plan
    who = plan.identity
    lines = [
        f"plan {plan.id}",
        f"profile {plan.profile} of {plan.policy or 'the built-in defaults'}",
        f"engine {plan.engine} {plan.runsc}, image {plan.image}, egress {plan.egress.describe()}",
        f"identity {who.uid}:{who.gid} in the box, {who.host_uid}:{who.host_gid} on this machine",
        f"command {' '.join(plan.command)}",
        f"workdir {plan.workdir}",
    ]
    sections: tuple[tuple[str, tuple[Described, ...]], ...] = (
        ("mounts", (*plan.binds, *plan.tmpfs)),
        ("late masks", plan.guards),
        ("limits", plan.limits),
        ("environment", plan.env),
    )
    for title, items in sections:
        lines += ["", f"{title}:", *(f"  {item.describe()}" for item in items)]
    lines += ["", "steps:", *(f"  {n}. {s.describe()}" for n, s in enumerate(steps(plan), 1))]
    if plan.findings:
        lines += ["", "findings:"]
        lines += [f"  {f.severity} {f.rule} {f.place}: {f.message}" for f in plan.findings]
    return lines


def _bundle(ready: Prepared) -> str:
    plan = ready.plan
    secrets = {v.name: "***" for v in plan.env if v.secret}
    if plan.engine == "docker":
        from bawn.effects.process import paste
        from bawn.plan.docker import Files, docker_argv

        files = Files("RUN/own", "RUN/empty", bool(plan.seed or plan.settings))
        return paste(docker_argv(plan, "RUN", files, tty=False))
    from bawn.plan import oci

    seed = "RUN/seed" if plan.seed or plan.settings else ""
    data = oci.bundle(
        plan,
        rootfs="RUN/rootfs",
        image=(),
        empty=oci.Empty("RUN/empty", "RUN/empty.d"),
        init="RUN/init",
        seed=seed,
        tty=False,
        secrets=secrets,
    )
    return json.dumps(data, indent=2)
