"""How a run ended."""

from bawn.typed import NamedTuple

TIMEOUT, CANNOT_RUN = 124, 125  # 126 and 127 are init.c's


class Outcome(NamedTuple):
    """`reason`: exit, signal, timeout, memory, pids, mask, engine."""

    exit: int  # bawn's exit code
    reason: str
    duration_ms: int
    peak_memory: int = -1  # bytes; -1 where not measured
    limits_hit: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
