"""`bawn team audit|harden|rollback hermes`: what a Hermes team can reach, and closing it."""

import argparse
import json
import os
import site
import sys
from functools import partial

from bawn.cli.text import escape
from bawn.errors import HostError, UsageError
from bawn.facts import dirs
from bawn.facts import hermes as facts
from bawn.plan.model import Finding
from bawn.teams import hermes
from bawn.teams.hermes_harden import KIND, Wish, block, changes, open_ends, verify
from bawn.teams.hermes_rules import findings
from bawn.typed import Any

Wanted = tuple[tuple[str, Any], ...]
HELP = "What a Hermes team's tools and gateway can reach, and hardening of it, taken back by rollback."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["audit", "harden", "rollback"])
    parser.add_argument("team", choices=["hermes"])
    parser.add_argument("--home", default="", help="the Hermes home (default: $HERMES_HOME, else ~/.hermes)")
    parser.add_argument(
        "--managed", default="", help="the managed scope (default: $HERMES_MANAGED_DIR, /etc/hermes)"
    )
    parser.add_argument(
        "--profile", action="append", default=[], help="only this one; harden leaves `default` alone"
    )
    parser.add_argument(
        "--allow-dir", action="append", default=[], help="harden: what the gateway may send from"
    )
    parser.add_argument("--write-root", action="append", default=[],
                        help="harden: every volume read-only but for this directory in it")  # fmt: skip
    parser.add_argument("--plan", action="store_true", help="harden: only show")
    parser.add_argument("--force", action="store_true", help="rollback although a file changed since")
    parser.add_argument("--json", action="store_true", help="audit as JSON")


def run(args: argparse.Namespace) -> int:
    """audit: 1 where a finding is an error; harden: 1 where one is left, or where --plan has changes."""
    if sys.flags.no_site:  # bawn starts without what the editors of YAML and TOML need
        site.main()
    if args.what == "rollback":
        return _rollback(args)
    homes = _homes(args)
    if args.what == "audit":
        return _audit(args, homes)
    return _harden(args, homes)


def _top(args: argparse.Namespace) -> str:
    return os.path.realpath(args.home or os.environ.get("HERMES_HOME") or os.path.expanduser("~/.hermes"))


def _managed(args: argparse.Namespace) -> str:
    return args.managed or os.environ.get("HERMES_MANAGED_DIR", "").strip() or facts.MANAGED


def _homes(args: argparse.Namespace) -> list[hermes.HermesHome]:
    found = [read(one) for one in facts.observe(_top(args), _managed(args), hermes.WATCHED)]
    unknown = set(args.profile) - {home.profile for home in found}
    if unknown:
        names = ", ".join(home.profile for home in found)
        raise UsageError(f"no profile {sorted(unknown)[0]!r}; the profiles are {names}")
    return [home for home in found if not args.profile or home.profile in args.profile]


def read(found: facts.Found) -> hermes.HermesHome:
    """A profile with its YAML read. A file that is none is not an error here, but a finding."""
    from bawn.edit.yaml_load import doubles

    name = f"{found.home}/config.yaml"
    config, wrong = _yaml(found.config, name)
    managed, managed_wrong = _yaml(found.managed, "the managed config.yaml")
    twice = doubles(found.config, name) if found.config is not None and not wrong else ()
    present = list(found.present)
    section = config.get("terminal") if isinstance(config, dict) else None
    if isinstance(section, dict):
        present += [f"credential:{path}" for path in facts.files(found.home, section.get("credential_files"))]
    return hermes.HermesHome(
        found.profile, found.home, config, wrong, twice, found.dotenv, managed, managed_wrong,
        found.managed_env, tuple(present),
    )  # fmt: skip


def _yaml(text: str | None, name: str) -> tuple[object, str]:
    from bawn.edit.yaml_load import load

    if text is None:
        return None, ""
    try:
        value = load(text, name)
    except HostError as error:
        if "ruamel" in error.message:
            raise
        return {}, error.message
    if value is None:
        return {}, ""
    return (value, "") if isinstance(value, dict) else ({}, f"{name} holds no mapping")


def _judged(home: hermes.HermesHome) -> tuple[dict[str, hermes.Setting], list[hermes.Mount], list[Finding]]:
    user = os.path.expanduser("~")
    settings = hermes.effective(home, os.environ, user)
    mounts = hermes.mounts(home, settings)
    return settings, mounts, findings(home, settings, mounts, user)


def _audit(args: argparse.Namespace, homes: list[hermes.HermesHome]) -> int:
    worst = False
    shown = []
    for home in homes:
        settings, mounts, found = _judged(home)
        worst = worst or any(one.severity == "error" for one in found)
        if args.json:
            shown.append({
                "profile": home.profile,
                "settings": [one._asdict() for one in settings.values() if one.key != "terminal.docker_env"],
                "mounts": [one._asdict() for one in mounts],
                "findings": [one._asdict() for one in found],
            })  # fmt: skip
            continue
        print(escape(f"profile {home.profile}  {home.home}"))
        for setting in settings.values():
            value = "***" if setting.key == "terminal.docker_env" and setting.value else setting.value
            print(escape(f"  {setting.key:<42} {json.dumps(value)}  ({setting.layer})"))
        if settings["terminal.backend"].value == "docker":
            for mount in mounts:
                mode = "rw" if mount.writable else "ro"
                print(escape(f"  {mode}  {mount.source} -> {mount.target}  ({mount.origin})"))
        for one in found:
            print(escape(f"  {one.rule} {one.severity}: {one.message}; fix: {one.fix}"))
    if args.json:
        print(json.dumps({"bawn_team": 1, "profiles": shown}, indent=2))
    return int(worst)


def _harden(args: argparse.Namespace, homes: list[hermes.HermesHome]) -> int:
    """One change of the ledger a profile, so that a failure leaves the others as they are."""
    from bawn.effects import ledger

    for path in args.write_root:
        if not os.path.isdir(path):
            raise UsageError(f"the write root {path} is no directory: docker would make one, owned by root")
    wish = Wish(tuple(args.allow_dir), tuple(args.write_root) or None)
    left = False
    for home in homes:
        if home.profile == "default" and "default" not in args.profile:
            print("default: left as it is; --profile default names it")
            continue
        text = facts.text(f"{home.home}/config.yaml")
        volumes = _judged(home)[0]["terminal.docker_volumes"].value
        change = changes(home, text, wish, volumes)
        if change is None:
            print(escape(f"{home.profile}: hardened already"))
        elif args.plan:
            left = True
            for line in change.describe():
                print(escape(line))
            print(escape(_diff(change.steps[0].old or b"", change.steps[0].new or b"", change.steps[0].path)))
        else:
            check = partial(_verify, args, home.profile, block(wish, volumes))
            entry = ledger.apply(change, dirs.observe().state, check)
            print(escape(f"{home.profile}: {entry.state} (change {entry.number})"))
        if not args.plan:
            for one in open_ends(_judged(_again(args, home.profile))[2]):
                left = left or one.severity == "error"
                print(escape(f"  still open: {one.rule} {one.severity}: {one.message}; fix: {one.fix}"))
    return int(left)


def _again(args: argparse.Namespace, profile: str) -> hermes.HermesHome:
    """The profile as it is on disk now."""
    found = facts.observe(_top(args), _managed(args), hermes.WATCHED)
    return next(read(one) for one in found if one.profile == profile)


def _verify(args: argparse.Namespace, profile: str, wanted: Wanted) -> None:
    """Reads again as Hermes would. Raises HostError where something else counts."""
    now = _again(args, profile)
    verify(now, _judged(now)[0], wanted)


def _diff(old: bytes, new: bytes, path: str) -> str:
    import difflib

    first, last = (part.decode(errors="backslashreplace").splitlines() for part in (old, new))
    return "\n".join(difflib.unified_diff(first, last, path, "after", lineterm=""))


def _rollback(args: argparse.Namespace) -> int:
    """Every change of this home (or of the named profiles) that is in force, the newest first."""
    from bawn.cli.rollback import take_back
    from bawn.effects import journal

    state, top = dirs.observe().state, _top(args)
    wanted = [
        f"{top}/config.yaml" if name == "default" else f"{top}/profiles/{name}/config.yaml"
        for name in args.profile
    ]
    mine = [
        entry
        for entry in journal.entries(state)
        if entry.kind == KIND
        and entry.in_force
        and any(
            kept.path in wanted or (not wanted and kept.path.startswith(f"{top}/")) for kept in entry.steps
        )
    ]
    if not mine:
        print("nothing to undo: no change of this home is in force")
        return 0
    return max([take_back(state, entry.number, 0, args.force) for entry in reversed(mine)])
