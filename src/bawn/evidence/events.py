"""The events a run leaves behind, and how bawn tells a person about progress.

`Observer` is silent by default (the Python API prints nothing); the CLI hands in one that writes
to stderr. Events are plain data: one JSON object a line in the run log.
"""

from bawn.typed import NamedTuple, Protocol


class Started(NamedTuple):
    """A box is about to start."""

    run: str  # run id
    time: str  # UTC, RFC 3339 with milliseconds
    plan: str  # plan id
    profile: str
    engine: str
    command: tuple[str, ...]
    workdir: str
    policy: str
    overrides: tuple[tuple[str, str], ...]


class Ended(NamedTuple):
    """A box has ended. `reason`: exit, signal, timeout, memory, pids, mask, engine."""

    run: str
    time: str
    exit: int  # bawn's exit code
    reason: str
    duration_ms: int
    peak_memory: int  # bytes; -1 where not measured
    limits_hit: tuple[str, ...]
    new_host_exec: tuple[str, ...]  # host-executed files that the run made
    notes: tuple[str, ...]


class Passage(NamedTuple):
    """One decision on the way out. `verdict`: allowed, denied, or failed where the host did not answer."""

    run: str
    time: str  # UTC, of the decision where it denies, else of the end
    profile: str
    way: str  # connect, transparent, http, resolve
    verdict: str
    rule: str
    name: str
    port: int
    address: str  # the one dialled; "" where none was
    reason: str
    by: str  # the line of policy that allows it
    fix: str  # the line that would
    sent: int  # bytes from the box
    received: int
    duration_ms: int
    how: str  # closed, failed, idle; drained at the end of the run; "" where nothing was opened


class Observer(Protocol):
    """Where progress goes. Implementations must not raise."""

    def step(self, text: str) -> None:
        """A slow step begins."""

    def warn(self, text: str) -> None:
        """Something a person should read."""


class Silent:
    """The default observer."""

    def step(self, text: str) -> None:
        pass

    def warn(self, text: str) -> None:
        pass
