"""`bawn run [OPTIONS] [--] [COMMAND...]`: the main job. The hot path: the standard library only.

stdout is the command's alone; bawn speaks on stderr.
"""

import os
import sys

from bawn.cli.prepare import Prepared, Wanted, prepare, say
from bawn.errors import RefusedError, UsageError
from bawn.evidence.events import Silent
from bawn.facts.dirs import Dirs
from bawn.facts.policy_file import Found
from bawn.typed import TYPE_CHECKING

if TYPE_CHECKING:  # a run without a policy file needs no trust
    from bawn.facts.trust import Trust

HELP = "run a command in a box"
# option -> (takes a value, what it does)
OPTIONS = {
    "--profile": (True, "the profile to use (default: the one named default, or the only one)"),
    "--policy": (True, "the policy file (default: bawn.toml here or above, else the user's own)"),
    "--engine": (True, "gvisor or docker, instead of the profile's"),
    "--image": (True, "an image, instead of the profile's"),
    "--timeout": (True, "end the run after this long (90s, 2h), if the policy's limit is later"),
    "--wait": (True, "wait this long (60s) for a docker daemon that is down"),
    "--learn": (False, "afterwards, propose the narrowest allow-list that would have let the run"),
    "--json": (False, "print the run record as one JSON line on stderr at the end"),
    "--quiet": (False, "no word of bawn's own but errors"),
    "--help": (False, "this text"),
}
# What a listed host lets out: `bawn check` says it; it does not change from run to run.
CHECK_SAYS = ("BWN720", "BWN721", "BWN722", "BWN723")
SHORT = {"-p": "--profile", "-q": "--quiet", "-h": "--help"}


def main(words: list[str]) -> int:
    """The exit code: the command's, or 124 to 127 (see bawn.cli)."""
    options, command = parse_words(words)
    if "--help" in options:
        print(usage())
        return 0
    return run(options, Wanted(), tuple(command))


def parse_words(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Splits options from the command: it starts at `--` or at the first word that is no option.

    Raises UsageError.
    """
    options: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, value = word.partition("=")
        name = SHORT.get(name, name)
        if name not in OPTIONS:
            raise UsageError(
                f"no option {word!r}; allowed: {' '.join(OPTIONS)}",
                "bawn run --help; a command that starts with a dash comes after --",
            )
        takes, _ = OPTIONS[name]
        if takes and not equals:
            if not rest:
                raise UsageError(f"{name} needs a value")
            value = rest.pop(0)
        elif equals and not takes:
            raise UsageError(f"{name} takes no value, got {value!r}")
        options[name] = value
    return options, rest


def usage() -> str:
    """The text of `bawn run --help`."""
    lines = [f"  {name + (' VALUE' if OPTIONS[name][0] else ''):<16}  {OPTIONS[name][1]}"
             for name in OPTIONS]  # fmt: skip
    return "\n".join(["usage: bawn run [OPTIONS] [--] [COMMAND...]", "", *lines])


def run(options: dict[str, str], wanted: Wanted, command: tuple[str, ...]) -> int:
    """Plans and runs. `wanted` carries what the verb itself decides."""
    wanted = wanted._replace(
        policy=options.get("--policy", ""),
        profile=options.get("--profile", ""),
        engine=options.get("--engine", ""),
        image=options.get("--image", ""),
        wait=_seconds("--wait", options.get("--wait", "")),
        quiet="--quiet" in options,
    )
    quiet = "--quiet" in options
    ready = prepare(wanted, command, _require_trust)
    ready = _shorten(ready, _seconds("--timeout", options.get("--timeout", "")))
    _tell(ready, quiet)
    learn = "--learn" in options
    if learn and ready.plan.egress.mode == "none":
        raise UsageError(
            "--learn: the profile has no way out to learn from", 'egress = "proxy" in the profile'
        )
    return _start(ready, quiet, "--json" in options, learn)


def _seconds(option: str, text: str) -> int:
    from bawn.policy.units import duration

    if not text:
        return 0
    try:
        seconds = duration(text)
    except ValueError as error:
        raise UsageError(f"{option} {text!r}: {error}") from None
    if seconds < 1:
        raise UsageError(f"{option} {text!r}: at least 1s")
    return seconds


def _shorten(ready: Prepared, timeout: int) -> Prepared:
    """A time-out on the command line can only shorten the policy's."""
    limit = ready.plan.limit("time")
    if not timeout or timeout >= limit.value:
        return ready
    limits = tuple(item._replace(value=timeout) if item is limit else item for item in ready.plan.limits)
    return ready._replace(plan=ready.plan._replace(limits=limits))


def _require_trust(found: Found, where: Dirs) -> Found:
    """Asks a person at a terminal about a policy that is not trusted. Raises TrustError."""
    from bawn.effects import trust

    return trust.require(found, where, _ask if os.isatty(0) and os.isatty(2) else None)


def _ask(found: Found, state: "Trust") -> bool:
    from bawn.cli.trust import ask

    return ask(found, state)


def _tell(ready: Prepared, quiet: bool) -> None:
    """What a person must know before it starts. Raises RefusedError for a plan with errors."""
    plan = ready.plan
    if not quiet:
        if not ready.found:
            mount = f"with {plan.workdir or ready.facts.cwd} as the one mount"
            say(f"no bawn.toml found: the defaults, {mount}, and {_way_out(ready)}")
        for finding in plan.findings:
            if finding.severity == "warning" and finding.rule not in CHECK_SAYS:
                say(f"{finding.rule} {finding.place}: {finding.message}")
        for limit in plan.limits:
            if not limit.holds:
                say(f"limit {limit.name} does not hold: {limit.note}")
    if plan.errors:
        raise RefusedError(
            "refused, nothing was started:\n"
            + "\n".join(
                f"  {f.rule} {f.place}: {f.message}" + (f"\n    fix: {f.fix}" if f.fix else "")
                for f in plan.errors
            ),
            "bawn check shows the whole boundary",
        )


def _way_out(ready: Prepared) -> str:
    if ready.plan.egress.mode == "none":
        return "no network"
    return f"{' '.join(ready.profile.allow)} as the one way out"


def _start(ready: Prepared, quiet: bool, as_json: bool, learn: bool) -> int:
    from bawn.effects import box_run

    secrets = read_secrets(ready)
    tty = os.isatty(0) and os.isatty(1)
    observer = Silent() if quiet else Stderr()
    ended = box_run.run(ready.plan, ready.facts, secrets=secrets, tty=tty, observer=observer)
    if not quiet or ended.reason in box_run.REFUSED:
        for line in box_run.describe(ended):
            say(line)
    if learn:
        from bawn.cli.learned import tell

        tell(ready, ended.run)
    if as_json:
        import json

        print(json.dumps(ended._asdict()), file=sys.stderr)
    return ended.exit


def read_secrets(ready: Prepared) -> dict[str, str]:
    """The values of the plan's secrets, from the environment or their file. Held in memory only."""
    from bawn.facts.secrets import read

    wanted = {v.name for v in ready.plan.env if v.secret}
    return {s.name: read(s, ready.facts.host.home) for s in ready.profile.secrets
            if s.name in wanted}  # fmt: skip


class Stderr:
    """Progress for a person."""

    def step(self, text: str) -> None:
        say(text)

    def warn(self, text: str) -> None:
        say(text)
