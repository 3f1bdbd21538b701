"""`bawn send check|stage|unstage`: which files of a reply may leave, and private copies of those."""

import argparse
import json
import os
import sys

from bawn.cli.outbound import add_guard_arguments, service
from bawn.cli.text import escape
from bawn.errors import UsageError
from bawn.outbound.http import MAX_BODY, Refused, parse_json
from bawn.outbound.rules import RULES
from bawn.typed import Any

HELP = "Which files that a reply names may leave the machine; the reply is text or JSON on stdin."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="what", required=True, metavar="check|stage|unstage")
    for name, text in (
        ("check", "one verdict for each file that is named"),
        ("stage", "also a private copy of each file that may leave, for an hour"),
    ):
        one = verbs.add_parser(name, help=text)
        one.add_argument("file", nargs="?", default="-", help="the reply (default: standard input)")
        form = one.add_mutually_exclusive_group()
        form.add_argument("--text", action="store_true", help="it is text, also where it looks like JSON")
        form.add_argument("--data", action="store_true", help="it is JSON: a task, or a list of files")
        one.add_argument("--json", action="store_true", help="the verdicts as JSON")
        add_guard_arguments(one)
    gone = verbs.add_parser("unstage", help="remove copies")
    gone.add_argument("tokens", nargs="+", metavar="TOKEN")


def run(args: argparse.Namespace) -> int:
    """0: every file may leave; 1: at least one is denied (the others still go); 2 usage or policy."""
    if args.what == "unstage":
        return _unstage(args.tokens)
    data = _read(args)
    guard = service(args)
    try:
        result = guard.call(args.what, data)
    except Refused as error:
        raise UsageError(f"the reply cannot be searched: {error.why}") from None
    finally:
        guard.close()
    if args.json:
        print(json.dumps(result.data, indent=2))
    else:
        for one in result.data["files"]:
            for line in _lines(one):
                print(escape(line).replace("\n", "\\n"))
    return 1 if result.data["denied"] else 0


def _lines(one: dict[str, Any]) -> list[str]:
    if one["allowed"]:
        copy = [f"  copy {one['staged']}"] if "staged" in one else []
        return [f"allowed {one['rule']} {one['path']}", *copy]
    name = one["asked"] or "(not named)"
    return [
        f"denied {one['rule']} {name}: {RULES[one['rule']].what}",
        f"  why  {one['reason']} ({one['where']}, {one['form']})",
        f"  fix  {RULES[one['rule']].fix}",
    ]


def _read(args: argparse.Namespace) -> Any:
    """The reply: data where it is, or where it looks like, a JSON object or list; else text."""
    try:
        if args.file == "-":
            raw = sys.stdin.buffer.read(MAX_BODY + 1)
        else:
            with open(args.file, "rb") as file:
                raw = file.read(MAX_BODY + 1)
    except OSError as error:
        raise UsageError(f"cannot read {args.file}: {error.strerror}") from None
    if len(raw) > MAX_BODY:
        raise UsageError(f"a reply of more than {MAX_BODY} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise UsageError("the reply is not UTF-8") from None
    if args.text or not (args.data or text.lstrip()[:1] in ("{", "[")):
        return text
    try:
        return parse_json(text)
    except ValueError as error:
        if args.data:
            raise UsageError(f"the reply: {error}") from None
        return text


def _unstage(tokens: list[str]) -> int:
    from bawn.effects.outbound.stage import Stage
    from bawn.facts import dirs

    state = dirs.observe().state
    if not os.path.isdir(f"{state}/outbound"):
        return 1
    stage = Stage(state)
    try:
        return 0 if all([stage.remove(token) for token in tokens]) else 1
    finally:
        stage.close()
