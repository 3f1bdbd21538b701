"""The undo of a change's steps: stage and check every copy first, then swap, then verify."""

import os
from collections.abc import Iterable

from bawn.digest import sha256_hex
from bawn.effects import journal
from bawn.effects.atomic import sync_directory
from bawn.effects.journal import Entry, Kept
from bawn.effects.snapshot import look, put
from bawn.errors import HostError


def restore(state: str, entry: Entry, chosen: Iterable[int]) -> None:
    """Brings the chosen steps back, the last first. It may have been done in part before.

    Raises OSError: a copy that is not what was kept stops it before anything is touched.
    """
    order = sorted(chosen, reverse=True)
    copies = {at: _copy(state, entry, at) for at in order if not entry.steps[at].undone}
    for at in order:
        if at in copies:
            _restore_one(entry, entry.steps[at], copies[at])
    for at in order:
        _verify(entry.steps[at])


def _copy(state: str, entry: Entry, at: int) -> bytes | None:
    before = entry.steps[at].before
    if not before.exists:
        return None
    path = journal.copy_of(state, entry.number, at + 1)
    with open(path, "rb") as file:
        data = file.read()
    if sha256_hex(data) != before.sha256:
        raise OSError(f"{path} is not what was kept")
    return data


def _restore_one(entry: Entry, kept: Kept, data: bytes | None) -> None:
    temporary = entry.temporary(kept)
    if os.path.lexists(temporary):  # of a bawn that was killed
        os.unlink(temporary)
    real = kept.before.real
    if data is None:
        if os.path.lexists(real):
            os.unlink(real)
            sync_directory(os.path.dirname(real))
    elif not _as_before(kept):
        os.makedirs(os.path.dirname(real), exist_ok=True)
        put(kept.before, data, temporary)
    for path in kept.made:
        if os.path.isdir(path) and not os.listdir(path):
            os.rmdir(path)


def _as_before(kept: Kept) -> bool:
    try:
        now, _ = look(kept.before.real)
    except HostError:  # no longer a file that could be edited: it is replaced
        return False
    return not kept.before.differs(now)


def _verify(kept: Kept) -> None:
    try:
        now, _ = look(kept.before.real)
    except HostError as error:
        raise OSError(error.message) from None
    if wrong := kept.before.differs(now):
        raise OSError(f"{kept.before.real} is not as it was: {wrong}")


def whereabouts(state: str, entry: Entry) -> str:
    """What lies where, for each step: for a person who has to mend it by hand."""
    found = []
    for number, kept in enumerate(entry.steps, 1):
        real = kept.before.real
        if kept.before.exists:
            kept_at = f"its old content in {journal.copy_of(state, entry.number, number)}"
        else:
            kept_at = "before, it was not there"
        found.append(f"{real} {_now(kept)}, {kept_at}")
    return "; ".join(found)


def _now(kept: Kept) -> str:
    try:
        now, _ = look(kept.before.real)
    except HostError as error:
        return f"cannot be told ({error.message})"
    if not kept.before.differs(now):
        return "is as it was"
    if now.exists == kept.after.exists and now.sha256 == kept.after.sha256:
        return "is as bawn wrote it"
    return "is neither as it was nor as bawn wrote it" if now.exists else "is gone"
