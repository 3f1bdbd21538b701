"""`bawn runs`: the runs of the past, from the run log."""

import argparse
import json

from bawn.evidence import runlog
from bawn.facts import dirs

HELP = "The runs of the past: when, which profile, how it ended, how long, how much memory."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, default=20, help="how many, newest last (default 20)")
    parser.add_argument("--json", action="store_true", help="the events as JSON lines")


def run(args: argparse.Namespace) -> int:
    """0 always: an empty log is no fault."""
    events = list(runlog.read(dirs.observe().state))
    if args.json:
        wanted = {e["run"] for e in _started(events)[-args.n :]}
        for event in events:
            if event.get("run") in wanted:
                print(json.dumps(event, ensure_ascii=False))
        return 0
    ended = {e.get("run"): e for e in events if e.get("event") == "ended"}
    for event in _started(events)[-args.n :]:
        print(_row(event, ended.get(event["run"])))
    return 0


def _started(events: list[dict[str, object]]) -> list[dict[str, object]]:
    return [e for e in events if e.get("event") == "started"]


def _row(start: dict[str, object], end: dict[str, object] | None) -> str:
    from bawn.cli.text import escape

    command = start.get("command")
    words = " ".join(map(str, command)) if isinstance(command, list) else ""
    head = f"{start['run']} {start.get('time')} {start.get('engine')} {start.get('profile')}"
    if end is None:
        return escape(f"{head} unfinished: {words}")[:200]
    seconds = int(str(end.get("duration_ms", 0))) / 1000
    peak = int(str(end.get("peak_memory", -1)))
    memory = f"{peak / 2**20:.0f}MiB" if peak >= 0 else "-"
    return escape(f"{head} {end.get('reason')} {end.get('exit')} {seconds:.2f}s {memory}: {words}")[:200]
