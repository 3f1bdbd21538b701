"""The loop: frames of the relay in, conversations, frames out. asyncio, and all of it in one thread."""

import asyncio
import socket
from collections.abc import Callable

from bawn.egress.commands import Command, Resolve
from bawn.egress.config import ruleset
from bawn.egress.conversation import Conversation
from bawn.egress.serve import frames
from bawn.egress.serve.log import Log, utc_now
from bawn.egress.serve.resolver import Addresses, Resolver, own_addresses
from bawn.evidence.events import Passage
from bawn.plan.way_config import Config
from bawn.typed import Any

READ = 1 << 17  # bytes of frames at a time
FRESH = 10.0  # seconds for which the host's own addresses are taken as known


class Talk:
    """A conversation, and since when (of the loop's clock)."""

    __slots__ = ("conversation", "logged", "since")

    def __init__(self, conversation: Conversation, since: float) -> None:
        self.conversation, self.since, self.logged = conversation, since, False


class Server:
    """Ends (`over` is set) with the relay: without it there is no way out."""

    def __init__(
        self, config: Config, relay: socket.socket, log: Log, resolver: Resolver,
        own: Callable[[], tuple[tuple[str, str], ...]] = own_addresses,
    ) -> None:  # fmt: skip
        self._config, self._relay, self._log, self._resolver, self._own = config, relay, log, resolver, own
        self._loop = asyncio.get_running_loop()
        self._frames, self._out = frames.Reader(), bytearray()
        self._talks: dict[int, Talk] = {}
        self._rules, self._fresh_until = ruleset(config.egress), 0.0
        self._counts = dict.fromkeys(("allowed", "denied", "failed"), 0)
        self.over = asyncio.Event()
        relay.setblocking(False)
        self._loop.add_reader(relay, self._readable)

    # --- what the control socket asks ---

    def reload(self, config: Config) -> int:
        """Another policy, also for what is open; how many connections it ends."""
        self._config, self._fresh_until = config, 0.0
        self._resolver.forget()
        before = self._counts["denied"]
        for id, talk in list(self._talks.items()):
            self._act(id, talk, talk.conversation.reload(self._current()))
        self._flush()
        return self._counts["denied"] - before

    def status(self) -> dict[str, Any]:
        open_now = sum(not talk.conversation.denied for talk in self._talks.values())
        named = {"run": self._config.run, "profile": self._config.profile}
        return {**named, "open": open_now, "lines": len(self._config.egress.allow), **self._counts}

    def drain(self) -> None:
        """Accepts nothing more, and writes down what is still open."""
        self._send(frames.drain())
        for id in list(self._talks):
            self._ended(frames.Ended(id, "drained", 0, 0))
        self._log.write()

    # --- frames ---

    def _readable(self) -> None:
        try:
            data = self._relay.recv(READ)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._relay)
            self.over.set()
            return
        for event in self._frames.feed(data):
            self._happened(event)
        self._flush()

    def _happened(self, event: frames.Event) -> None:
        talk = self._talks.get(event.id)
        match event:
            case frames.Data(id, data):
                if talk is None:
                    conversation = Conversation(self._current(), self._config.profile)
                    talk = self._talks[id] = Talk(conversation, self._loop.time())
                self._act(id, talk, talk.conversation.data(data))
            case frames.Dialled(id, number, trouble):
                if talk:
                    self._act(id, talk, talk.conversation.dialled(number, trouble))
            case frames.Late(id):
                if talk is None:  # it never said a word
                    talk = Talk(Conversation(self._current(), self._config.profile), self._loop.time())
                    self._talks[id] = talk
                self._act(id, talk, talk.conversation.late())
            case frames.Ended():
                self._ended(event)

    def _act(self, id: int, talk: Talk, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, Resolve):
                self._resolver.resolve(command.name, lambda answer: self._resolved(id, talk, answer))
            else:
                self._out += frames.encode(id, command)
        if talk.conversation.denied and not talk.logged:
            self._record(talk, "", 0, 0)

    def _resolved(self, id: int, talk: Talk, addresses: Addresses) -> None:
        if self._talks.get(id) is talk:
            self._act(id, talk, talk.conversation.resolved(addresses))
            self._flush()

    def _ended(self, event: frames.Ended) -> None:
        talk = self._talks.pop(event.id, None)
        if talk and not talk.logged and talk.conversation.passes:
            self._record(talk, event.how, event.sent, event.received)

    def _record(self, talk: Talk, how: str, sent: int, received: int) -> None:
        talk.logged = True
        conversation, decision = talk.conversation, talk.conversation.decision
        failed = decision.rule in ("BWN822", "BWN823", "BWN824", "BWN850")
        verdict = "allowed" if decision.allowed else "failed" if failed else "denied"
        self._counts[verdict] += 1
        duration = int((self._loop.time() - talk.since) * 1000)
        self._log.add(Passage(
            self._config.run, utc_now(), self._config.profile, conversation.way, verdict, decision.rule,
            decision.name, decision.port, conversation.address, decision.reason, decision.by, decision.fix,
            sent, received, duration, how,
        ))  # fmt: skip

    def _current(self) -> Any:
        """The rules, with the host's own addresses as they are now."""
        if self._loop.time() >= self._fresh_until:
            self._rules = ruleset(self._config.egress, self._own())
            self._fresh_until = self._loop.time() + FRESH
        return self._rules

    # --- to the relay ---

    def _flush(self) -> None:
        """A denial is written down before the client hears of it."""
        self._log.write()
        if self._out:
            self._send(b"")

    def _send(self, more: bytes) -> None:
        self._out += more
        try:
            while self._out:
                del self._out[: self._relay.send(self._out)]
        except (BlockingIOError, InterruptedError):
            self._loop.add_writer(self._relay, self._writable)
        except OSError:
            self.over.set()

    def _writable(self) -> None:
        self._loop.remove_writer(self._relay)
        self._send(b"")
