"""The ledger on disk: one directory a change, in bawn's state.

`ledger/000007/entry.json` says what is to be undone and how far it got; `before-N` are the copies.
A directory is made for one change and never used again, so no copy is ever written over. An entry
that says "begun" while nobody holds the lock was interrupted.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bawn.effects.atomic import sync_directory, write_atomic
from bawn.effects.snapshot import Snapshot
from bawn.errors import HostError
from bawn.typed import Any, NamedTuple

BEGUN, APPLIED, RESTORED, FAILED = "begun", "applied and verified", "restored and verified", "ROLLBACK FAILED"
STATES = (BEGUN, APPLIED, RESTORED, FAILED)
WAIT = 10.0  # seconds for another bawn to end what it does


class Kept(NamedTuple):
    """One step as it is undone."""

    path: str  # as it was asked for
    does: str
    before: Snapshot
    after: Snapshot
    made: tuple[str, ...]  # directories, the deepest first
    owned: bool
    undone: bool


class Entry(NamedTuple):
    """One change. `token` is in the name of every temporary file; `told` what went wrong."""

    number: int
    kind: str
    title: str
    time: str
    token: str
    state: str
    readers: tuple[str, ...]
    steps: tuple[Kept, ...]
    told: str = ""

    @property
    def in_force(self) -> bool:
        """Something of it is not undone, or not known to be."""
        return self.state != RESTORED

    def temporary(self, kept: Kept) -> str:
        """The file beside the target while it is written."""
        directory, name = os.path.split(kept.before.real)
        return f"{directory}/.{name[:200]}.bawn-{self.token}.new"


def top(state: str) -> str:
    return f"{state}/ledger"


def folder(state: str, number: int) -> str:
    """Where the entry and the copies of a change lie."""
    return f"{top(state)}/{number:06d}"


def copy_of(state: str, number: int, step: int) -> str:
    """The content before step `step` (from 1)."""
    return f"{folder(state, number)}/before-{step}"


def _prepare(state: str) -> None:
    for path in (state, top(state)):
        os.makedirs(path, mode=0o700, exist_ok=True)


@contextmanager
def locked(state: str, wait: float = WAIT) -> Iterator[None]:
    """One bawn at a time changes things. Raises HostError after `wait` seconds."""
    try:
        _prepare(state)
        fd = os.open(f"{top(state)}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise HostError(
            f"cannot open the ledger {top(state)}, nothing was touched: {error.strerror}"
        ) from None
    try:
        until = time.monotonic() + wait
        while not _take(fd):
            if time.monotonic() >= until:
                raise HostError(
                    f"another bawn has been changing things for more than {wait:g} s",
                    "wait for it, or see what it does: bawn history",
                )
            time.sleep(0.05)
        yield
    finally:
        os.close(fd)


def _take(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def busy(state: str) -> bool:
    """Some bawn holds the lock now."""
    try:
        fd = os.open(f"{top(state)}/lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def new_folder(state: str) -> int:
    """A directory for the next change: its number. Removes what a killed bawn left before it had
    registered anything. Raises OSError."""
    numbers = _numbers(state)
    for number in numbers:
        if not os.path.exists(f"{folder(state, number)}/entry.json"):
            discard(state, number)
    number = max(numbers, default=0) + 1
    os.mkdir(folder(state, number), 0o700)
    sync_directory(top(state))
    return number


def discard(state: str, number: int) -> None:
    """Removes the directory of a change that was never registered. Raises OSError."""
    where = folder(state, number)
    for name in os.listdir(where):
        os.unlink(f"{where}/{name}")
    os.rmdir(where)


def forget_copies(state: str, number: int) -> None:
    """The copies of a change that is undone and verified: they may hold secrets. Raises OSError."""
    where = folder(state, number)
    for name in os.listdir(where):
        if name.startswith("before-"):
            os.unlink(f"{where}/{name}")


def _numbers(state: str) -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir(top(state)) if name.isdigit())
    except FileNotFoundError:
        return []


def save(state: str, entry: Entry) -> Entry:
    """Writes the entry, fsynced. Raises OSError."""
    data = json.dumps(_plain(entry), indent=1).encode()
    path = f"{folder(state, entry.number)}/entry.json"
    temporary = f"{path}.new"
    if os.path.exists(temporary):  # of a killed bawn
        os.unlink(temporary)
    write_atomic(path, data, 0o600, temporary=temporary)
    return entry


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(field) for name, field in value._asdict().items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def load(state: str, number: int) -> Entry:
    """Raises HostError for an entry that is not there or cannot be read."""
    path = f"{folder(state, number)}/entry.json"
    try:
        with open(path, "rb") as file:
            data = json.loads(file.read())
        if data["state"] not in STATES or data["number"] != number:
            raise ValueError("not an entry")
        steps = tuple(
            Kept(**{**step, "before": _snapshot(step["before"]), "after": _snapshot(step["after"]),
                    "made": tuple(step["made"])})
            for step in data["steps"]
        )  # fmt: skip
        return Entry(**{**data, "steps": steps, "readers": tuple(data["readers"])})
    except FileNotFoundError:
        raise HostError(f"the ledger has no change {number}", "bawn history") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HostError(
            f"{path} cannot be read ({error})", f"the old files lie in {folder(state, number)}"
        ) from None


def _snapshot(data: dict[str, Any]) -> Snapshot:
    return Snapshot(**{**data, "attributes": tuple((n, bytes.fromhex(v)) for n, v in data["attributes"])})


def entries(state: str) -> list[Entry]:
    """Every change that was registered, oldest first. Raises HostError."""
    numbers = _numbers(state)
    return [load(state, n) for n in numbers if os.path.exists(f"{folder(state, n)}/entry.json")]
