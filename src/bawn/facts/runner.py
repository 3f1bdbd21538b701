"""What facts need of `effects.process.run`, which they are handed (facts import no effects)."""

from collections.abc import Mapping, Sequence

from bawn.typed import Protocol


class Answer(Protocol):
    """A finished tool."""

    @property
    def code(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def complaint(self) -> str: ...


class Runner(Protocol):
    """Runs a tool to its end; raises HostError when it is missing or late."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        input: bytes | None = None,
        cap: int = 1 << 20,
    ) -> Answer: ...
