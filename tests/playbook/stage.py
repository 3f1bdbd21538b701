"""A conversation played without sockets: a script of the client's bytes, DNS answers, and who answers."""

from collections.abc import Callable

from bawn.egress.commands import Dial, End, Join, Read, Resolve, ToClient, ToServer
from bawn.egress.conversation import Conversation
from bawn.egress.decide import Ruleset, compiled
from bawn.policy.hosts import HostPattern

PUBLIC = "93.184.216.34"


def ruleset(*lines: str) -> Ruleset:
    return compiled([(HostPattern.parse(line), line) for line in lines])


class Stage:
    """Does what a conversation asks for, and keeps what it said. Bytes after a join pass by themselves."""

    def __init__(
        self, rules: Ruleset, dns: dict[str, tuple[str, ...] | None] | None = None, answers: bool = True
    ) -> None:
        self.talk = Conversation(rules, "build")
        self.dns = {"allowed.test": (PUBLIC,)} if dns is None else dns
        self.answers = answers
        self.to_client = self.to_server = b""
        self.asked: list[str] = []
        self.dialled: list[tuple[str, ...]] = []
        self.join: int | None = None
        self.end: str = ""
        self.wants = 1  # the relay reads once without being asked

    def send(self, *parts: bytes) -> "Stage":
        """The client's bytes as they arrive; b"" is its end."""
        for part in parts:
            if self.end:
                break
            if self.wants:
                self.wants -= 1
                self._do(self.talk.data(part))
            elif self.join is not None and self.join != 0:
                self.to_server += part if self.join < 0 else part[: self.join]
                self.join = -1 if self.join < 0 else self.join - len(part[: self.join])
            else:
                raise AssertionError(f"nobody reads {part!r}")
        return self

    def act(self, what: Callable[[Conversation], list]) -> "Stage":  # type: ignore[type-arg]
        self._do(what(self.talk))
        return self

    def _do(self, commands: list) -> None:  # type: ignore[type-arg]
        for command in commands:
            assert not self.end, f"{command} after the end"
            match command:
                case Read():
                    assert self.wants == 0
                    self.wants = 1
                case ToClient(data):
                    self.to_client += data
                case ToServer(data):
                    self.to_server += data
                case Resolve(name):
                    self.asked.append(name)
                    self._do(self.talk.resolved(self.dns.get(name, ())))
                case Dial(addresses, _):
                    self.dialled.append(addresses)
                    number = 0 if self.answers else -1
                    self._do(self.talk.dialled(number, "" if self.answers else "Connection refused"))
                case Join(upload):
                    self.join = upload
                case End(reset):
                    self.end = "reset" if reset else "end"

    @property
    def status(self) -> int:
        return int(self.to_client.split()[1]) if self.to_client else 0

    @property
    def rule(self) -> str:
        return self.talk.decision.rule
