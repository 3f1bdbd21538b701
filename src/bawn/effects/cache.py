"""Remembers what a tool answered about itself, so that a run need not ask again."""

import json
import os

from bawn.effects.atomic import write_atomic
from bawn.facts import runsc
from bawn.facts.model import Facts


def remember(facts: Facts) -> None:
    """Writes runsc's version for `facts.runsc.remembered`. A cache: failing to write is no error."""
    if not facts.runsc.version or runsc.remembered(path(facts.runtime), facts.runsc.path):
        return
    data = {"key": runsc.key(facts.runsc.path), "version": facts.runsc.version}
    try:
        os.makedirs(facts.runtime, mode=0o711, exist_ok=True)
        write_atomic(path(facts.runtime), json.dumps(data).encode(), 0o600)
    except OSError:
        return


def path(runtime: str) -> str:
    return f"{runtime}/runsc.json"
