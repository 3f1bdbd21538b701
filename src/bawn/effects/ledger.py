"""Changes to this machine that can be taken back exactly (DESIGN §9; `plan/change.py`).

The undo is registered, fsynced, before anything changes. The outcome is exactly one of: applied and
verified; restored and verified; ROLLBACK FAILED, with what lies where, and the journal kept.
"""

import contextlib
import os
import time
from collections.abc import Callable

from bawn.digest import sha256_hex
from bawn.effects import journal
from bawn.effects.atomic import sync_directory, write_atomic
from bawn.effects.journal import APPLIED, BEGUN, FAILED, RESTORED, Entry, Kept
from bawn.effects.snapshot import Snapshot, look, put
from bawn.effects.undo import restore, whereabouts
from bawn.errors import BawnError, HostError
from bawn.plan.change import Change, FileStep


def _nothing() -> None:
    """No live check, nothing to settle."""


def apply(
    change: Change,
    state: str,
    verify: Callable[[], None] = _nothing,
    settle: Callable[[], None] = _nothing,
    wait: float = journal.WAIT,
) -> Entry:
    """Does every step and verifies, or restores every file.

    `verify` raises BawnError when the result does not work; `settle` brings back what `verify`
    restarted, after the files are back. Raises HostError: its message says which outcome it was.
    """
    with journal.locked(state, wait):
        entry = _register(change, state)
        try:
            for number, step in enumerate(change.steps):
                _do(step, entry.steps[number], entry)
            verify()
            return journal.save(state, entry._replace(state=APPLIED))
        except BaseException as error:
            reason = error.message if isinstance(error, BawnError) else _said(error)
            _take_back(entry, state, settle, reason)
            raise HostError(
                f"{change.title} failed; the old state is {RESTORED}: {reason}",
                error.fix if isinstance(error, BawnError) else "",
            ) from None


def _said(error: BaseException) -> str:
    return str(error) if isinstance(error, OSError) else repr(error)


def _register(change: Change, state: str) -> Entry:
    """Looks, copies, and writes the undo down. Nothing of the machine is touched yet."""
    seen = [look(step.path) for step in change.steps]
    reals = [snapshot.real for snapshot, _ in seen]
    if len(set(reals)) != len(reals):
        raise HostError(f"{change.title}: one file twice in one change: {max(reals, key=reals.count)}")
    for entry in journal.entries(state):
        if entry.state in (BEGUN, FAILED) and {kept.before.real for kept in entry.steps} & set(reals):
            raise HostError(
                f"change {entry.number} ({entry.title}) was interrupted or could not be undone",
                f"bawn rollback {entry.number}",
            )
    kept = tuple(_kept(step, *found) for step, found in zip(change.steps, seen, strict=True))
    number = 0
    try:
        number = journal.new_folder(state)
        for place, (_, data) in enumerate(seen, 1):
            if data is not None:
                write_atomic(journal.copy_of(state, number, place), data, 0o600)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        token = os.urandom(4).hex()
        entry = Entry(number, change.kind, change.title, now, token, BEGUN, change.readers, kept)
        return journal.save(state, entry)
    except BaseException as error:
        # Where even this fails the directory has an entry that says "begun", with nothing to undo.
        with contextlib.suppress(OSError):
            if number:
                journal.discard(state, number)
        raise HostError(
            f"{change.title} failed; the old state is {RESTORED}, for nothing was touched: {_said(error)}"
        ) from None


def _kept(step: FileStep, before: Snapshot, data: bytes | None) -> Kept:
    if data != step.old:
        raise HostError(f"{before.real} changed while this was planned", "look at it, then try again")
    if step.new is None:
        after = Snapshot(before.real)
    elif before.exists:
        after = before._replace(sha256=sha256_hex(step.new))
    else:
        after = Snapshot(before.real, True, sha256_hex(step.new), step.mode, os.geteuid(), os.getegid())
    return Kept(step.path, step.does, before, after, _missing(before.real), step.owned, False)


def _missing(path: str) -> tuple[str, ...]:
    """The directories above `path` that are not there, the deepest first."""
    found = []
    while (path := os.path.dirname(path)) and not os.path.exists(path):
        found.append(path)
    return tuple(found)


def _do(step: FileStep, kept: Kept, entry: Entry) -> None:
    """One step, read back. Raises OSError, HostError."""
    real = kept.before.real
    for path in reversed(kept.made):
        if not os.path.isdir(path):  # a step before may have made it
            os.mkdir(path, 0o755)
            sync_directory(os.path.dirname(path))
    if step.new is None:
        if kept.before.exists:
            os.unlink(real)
            sync_directory(os.path.dirname(real))
    elif kept.before.exists:
        if step.changes:
            put(kept.after, step.new, entry.temporary(kept))
    else:
        write_atomic(real, step.new, step.mode, temporary=entry.temporary(kept))
    now, _ = look(step.path)
    # Of a new file the directory decides group and ACL: there only the content is bawn's.
    if now.exists != kept.after.exists or now.sha256 != kept.after.sha256:
        raise HostError(f"{real} does not hold what was written")
    if kept.before.exists and (wrong := kept.after.differs(now)):
        raise HostError(f"{real} is not as it was written: {wrong}")


def _take_back(entry: Entry, state: str, settle: Callable[[], None], reason: str) -> None:
    """Restores after a failure. Raises HostError "ROLLBACK FAILED"."""
    try:
        restore(state, entry, range(len(entry.steps)))
    except OSError as error:
        raise _failed(state, entry, f"{_said(error)} (it had failed: {reason})") from None
    try:
        settle()
    except BawnError as error:
        told = f"the files are as they were, but what reads them is not: {error.message}"
        raise _failed(state, entry, f"{told} (it had failed: {reason})") from None
    close(state, entry._replace(told=reason))


def close(state: str, entry: Entry) -> Entry:
    """Marks an entry restored. Where that cannot be written it stays open, which is harmless: the
    next rollback finds the files as they were, and closes it."""
    done = tuple(kept._replace(undone=True) for kept in entry.steps)
    entry = entry._replace(state=RESTORED, steps=done)
    with contextlib.suppress(OSError):
        journal.save(state, entry)
        journal.forget_copies(state, entry.number)
    return entry


def _failed(state: str, entry: Entry, why: str) -> HostError:
    with contextlib.suppress(OSError):
        journal.save(state, entry._replace(state=FAILED, told=why))
    return HostError(
        f"{FAILED}: {why}; {whereabouts(state, entry)}",
        f"mend that, then: bawn rollback {entry.number}",
    )


def rollback(
    state: str,
    number: int,
    step: int = 0,
    force: bool = False,
    settle: Callable[[], None] = _nothing,
    wait: float = journal.WAIT,
) -> Entry | None:
    """Puts the exact old state of a change back, or of one `step` of it (from 1); None where it was
    undone before. An interrupted change is finished the same way.

    Raises HostError: where a file has changed since (unless `force`, which keeps a copy of it), or
    ROLLBACK FAILED.
    """
    with journal.locked(state, wait):
        entry = journal.load(state, number)
        if step and not 0 < step <= len(entry.steps):
            raise HostError(f"change {number} has the steps 1 to {len(entry.steps)}", "bawn history")
        chosen = [step - 1] if step else list(range(len(entry.steps)))
        if all(entry.steps[at].undone for at in chosen):
            return None
        changed = _changed(entry, chosen)
        if changed and not force:
            raise HostError(
                "; ".join(changed) + f"; the old copies lie in {journal.folder(state, number)}",
                f"bawn diff {number}, then: bawn rollback {number} --force",
            )
        try:
            if changed:
                _keep_changed(state, entry, chosen)
            restore(state, entry, chosen)
            settle()
        except (OSError, BawnError) as error:
            why = error.message if isinstance(error, BawnError) else _said(error)
            raise _failed(state, entry, why) from None
        steps = tuple(
            kept._replace(undone=True) if at in chosen else kept for at, kept in enumerate(entry.steps)
        )
        entry = entry._replace(steps=steps)
        if all(kept.undone for kept in steps):
            return close(state, entry)
        with contextlib.suppress(OSError):
            journal.save(state, entry)
        return entry


def _changed(entry: Entry, chosen: list[int]) -> list[str]:
    """What is neither as bawn left it nor as it was."""
    found = []
    for at in chosen:
        kept = entry.steps[at]
        if kept.owned or kept.undone:
            continue
        now, _ = look(kept.path)
        if not kept.before.differs(now):
            continue
        after = kept.after
        if not kept.before.exists and now.exists:  # group and ACL of a new file came from its directory
            after = after._replace(uid=now.uid, gid=now.gid, attributes=now.attributes)
        if wrong := after.differs(now):
            found.append(f"{kept.path} has changed since bawn wrote it: {wrong}")
    return found


def _keep_changed(state: str, entry: Entry, chosen: list[int]) -> None:
    """What --force is about to replace is somebody's work: it is kept beside the entry."""
    for at in chosen:
        kept = entry.steps[at]
        now, data = look(kept.before.real)
        if data is not None and now.sha256 not in (kept.before.sha256, kept.after.sha256):
            path = f"{journal.folder(state, entry.number)}/forced-{at + 1}-{now.sha256[:16]}"
            if not os.path.exists(path):
                write_atomic(path, data, 0o600)
