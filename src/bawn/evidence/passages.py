"""The record of the way out (`egress.log` in bawn's state): each decision of a proxy, a JSON line."""

import json
import os
from collections.abc import Iterator

from bawn.evidence.events import Passage
from bawn.typed import NamedTuple

# What is text, and what a number.
_SHAPE = Passage("", "", "", "", "", "", "", 0, "", "", "", "", 0, 0, 0, "")
LONGEST = 1 << 16  # bytes of one line; a name has 253, a reason little more


class Lines(NamedTuple):
    """What is new, and where to go on. `unreadable` lines are counted, not passed over in silence."""

    found: tuple[Passage, ...]
    at: int
    unreadable: int = 0


def log_of(state: str) -> str:
    return f"{state}/egress.log"


def read(state: str, at: int = 0) -> Lines:
    """The whole lines from byte `at` on. A file that has become shorter is read from its start.

    Raises OSError where there is a log that cannot be read.
    """
    try:
        fd = os.open(log_of(state), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Lines((), 0)
    with os.fdopen(fd, "rb") as file:
        if at > os.fstat(fd).st_size:
            at = 0
        file.seek(at)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    found = [_passage(line) for line in whole.splitlines()]
    good = tuple(one for one in found if one is not None)
    return Lines(good, at + len(whole), len(found) - len(good))


def of_run(state: str, run: str) -> Iterator[Passage]:
    """The decisions of one run, in order. Raises OSError."""
    return (one for one in read(state).found if one.run == run)


def _passage(line: bytes) -> Passage | None:
    try:
        data = json.loads(line[:LONGEST])
        passage = Passage(**data)
    except (ValueError, TypeError):
        return None
    good = all(isinstance(value, type(known)) for value, known in zip(passage, _SHAPE, strict=True))
    return passage if good else None
