"""`bawn doctor`: what this machine has, what is missing, and how to mend it."""

import argparse
import json
import os
import re

from bawn.effects import process
from bawn.errors import HostError, UsageError
from bawn.facts import dirs, docker, host, runsc
from bawn.plan.doctor import Diagnosis, Extras, colima_mounts, diagnose
from bawn.policy.units import duration

HELP = "What this machine has and lacks for each engine, each lack with a line that mends it."


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
    found = diagnose(machine, fact, docker.observe(process.run, wait), _extras(where))
    if args.json:
        print(json.dumps([d._asdict() for d in found], indent=2))
    else:
        for diagnosis in found:
            _show(diagnosis)
    bad = [d for d in found if d.state == "fail" and d.of in ("host", args.engine)]
    if not args.json:
        print(f"engine {args.engine}: " + ("ready" if not bad else f"not ready ({len(bad)})"))
    return 1 if bad else 0


def _show(diagnosis: Diagnosis) -> None:
    print(f"{diagnosis.state:<4} {diagnosis.id} {diagnosis.of:<6} {diagnosis.text}")
    if diagnosis.fix:
        print(f"                   fix: {diagnosis.fix}")


def _extras(where: dirs.Dirs) -> Extras:
    try:
        nft = process.run(["nft", "--version"], timeout=5).text.strip()
    except HostError:
        nft = ""
    uid, user = os.getuid(), os.environ.get("USER", "")
    subuid = bool(re.search(rf"^({re.escape(user)}|{uid}):", _text("/etc/subuid"), re.M))
    colima = _text(os.path.expanduser("~/.colima/default/colima.yaml"))
    return Extras(
        nft=nft,
        subuid=subuid,
        free=tuple((p, _free(p)) for p in (where.state, where.runtime)),
        rmem_visible=os.path.exists("/proc/sys/net/core/rmem_default"),
        colima=colima_mounts(colima) if colima else "",
    )


def _free(path: str) -> int:
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def _text(path: str) -> str:
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""
