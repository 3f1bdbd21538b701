"""`bawn doctor`: what this machine has, what is missing, and how to mend it."""

import argparse
import json
import os
import re

from bawn.cli.prepare import say
from bawn.effects import process
from bawn.errors import HostError, UsageError
from bawn.facts import dirs, docker, host, runsc
from bawn.plan.doctor import Diagnosis, Extras, colima_mounts, diagnose
from bawn.policy.units import duration

HELP = "What this machine has and lacks for each engine, each lack with a line that mends it."
_USERNS = {  # sysctl -> the value that forbids an ordinary user to make user namespaces
    "kernel.apparmor_restrict_unprivileged_userns": "1",
    "kernel.unprivileged_userns_clone": "0",
    "user.max_user_namespaces": "0",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", choices=["gvisor", "docker"], default="gvisor",
                        help="whose readiness the exit code tells (default gvisor)")  # fmt: skip
    parser.add_argument("--wait", default="0s", help="wait this long (60s) for a docker daemon")
    parser.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    """0 the engine can run; 1 it cannot."""
    try:
        wait = duration(args.wait)
    except ValueError as error:
        raise UsageError(f"--wait {args.wait!r}: wanted {error}") from None
    where, machine = dirs.observe(), host.observe()
    fact = runsc.observe(process.run, f"{where.runtime}/runsc.json", machine)
    daemon = docker.observe(process.run, wait, say)
    found = diagnose(machine, fact, daemon, _extras(where, fact.version))
    bad = [d for d in found if d.state == "fail" and d.of in ("host", args.engine)]
    if args.json:
        print(json.dumps([d._asdict() for d in found], indent=2))
    else:
        for diagnosis in found:
            _show(diagnosis)
        print(f"engine {args.engine}: " + (f"not ready ({len(bad)} to mend)" if bad else "ready"))
    return 1 if bad else 0


def _show(diagnosis: Diagnosis) -> None:
    print(f"{diagnosis.state:<4} {diagnosis.id} {diagnosis.of:<6} {diagnosis.text}")
    if diagnosis.fix:
        print(f"                   fix: {diagnosis.fix}")


def _extras(where: dirs.Dirs, version: str) -> Extras:
    uid, user = os.getuid(), os.environ.get("USER", "")
    subuid = bool(re.search(rf"^({re.escape(user)}|{uid}):", host.text("/etc/subuid"), re.M))
    return Extras(
        nft=_version("nft"),
        iptables=_version("iptables"),
        subuid=subuid or uid == 0,
        free=tuple((p, _free(p)) for p in (where.state, where.runtime)),
        userns=tuple((name, value) for name, value in _USERNS.items() if _sysctl(name) == value),
        mistakes_netns=runsc.mistakes_netns(process.run, version),
        colima=_colima(),
    )


def _version(program: str) -> str:
    try:
        answer = process.run([program, "--version"], timeout=5)
    except HostError:
        return ""
    return answer.text.strip() if answer.code == 0 else ""


def _sysctl(name: str) -> str:
    return host.text("/proc/sys/" + name.replace(".", "/")).strip()


def _colima() -> str:
    """ "" where there is no colima: it may be installed without ever having been started."""
    for path in ("~/.colima/default/colima.yaml", "~/.config/colima/default/colima.yaml"):
        if text := host.text(os.path.expanduser(path)):
            return colima_mounts(text)
    return ""


def _free(path: str) -> int:
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize
