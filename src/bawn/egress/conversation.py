"""One connection of a box, from its first byte to the join. Sans-io.

What happened goes in (`data`, `resolved`, `dialled`, `late`), what is to be done comes out
(`bawn.egress.commands`). Nothing of a client reaches a server before every decision on it is made:

    head    CONNECT host:port, an absolute http:// request, or the resolver's question
    names   decided on before any DNS; each address judged; one of the judged is dialled
    tunnel  443: a TLS hello that names the host. 80: requests whose Host is the host. Any other port:
            whichever of the two the client speaks; else (ssh, say) the bytes as they are
    join    from there on the relay moves bytes, and nobody looks at them

One request to a connection: what would be a second one (pipelined, kept alive) is never forwarded.
"""

import re
from collections.abc import Callable

import h11

from bawn.egress import answers, http_head
from bawn.egress.commands import Command, Dial, End, Join, Read, Resolve, ToClient, ToServer
from bawn.egress.decide import Decision, Ruleset, decide, judge, refused
from bawn.egress.hello import HelloReader, check_hello
from bawn.typed import Literal

Way = Literal["", "connect", "transparent", "http", "resolve"]
_TLS, _HTTP = 443, 80
_RECORD_TYPE = b"\x16"  # of a TLS handshake: RFC 8446 5.1
# A request line (RFC 9112 3), and what may yet become one. Servers skip an empty line before it (2.2).
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]"
_REQUEST_LINE = re.compile(_TOKEN + rb"+ [^\n]*HTTP/[0-9.]+[ \t\r]*\n")
_BEGUN = re.compile(_TOKEN + rb"*( [^\x00-\x1f]*)?\r?")


class Conversation:
    """`decision` is the latest; `denied` once it is final; `joined` once bytes pass."""

    __slots__ = (
        "_hello", "_judged", "_on_data", "_pending", "_profile", "_request", "_requests", "_ruleset",
        "_server_speaks", "address", "decision", "denied", "joined", "way",
    )  # fmt: skip

    def __init__(self, ruleset: Ruleset, profile: str) -> None:
        self._ruleset, self._profile = ruleset, profile
        self.decision = Decision(False, "BWN840", "nothing was asked for", "", 0)
        self.way: Way = ""
        self.address = ""  # the one that answered
        self.denied = False
        self.joined = False
        self._judged: tuple[str, ...] = ()
        self._pending = b""  # seen, and not yet passed on
        self._request = http_head.NO_REQUEST
        self._requests = http_head.reader()
        self._hello: HelloReader | None = None
        self._server_speaks = False
        self._on_data: Callable[[bytes], list[Command]] = self._head

    @property
    def passes(self) -> bool:
        """It was allowed, and not merely asked about."""
        return self.decision.allowed and self.way != "resolve"

    # --- what happens ---

    def data(self, data: bytes) -> list[Command]:
        """The client's bytes; none: its end."""
        if self.denied or (self.joined and not self._server_speaks):
            return []
        return self._on_data(data)

    def resolved(self, addresses: tuple[str, ...] | None) -> list[Command]:
        """What DNS gave; None: it did not answer."""
        if self.denied:
            return []
        if addresses is None:
            return self._deny(refused(self.decision, "BWN824", f"{self.decision.name}: DNS did not answer"))
        judged = judge(self._ruleset, self.decision, addresses)
        if not judged.decision.allowed:
            return self._deny(judged.decision)
        self._judged = judged.addresses
        return [Dial(judged.addresses, self.decision.port)]

    def dialled(self, number: int, trouble: str = "") -> list[Command]:
        """The number of the address that answered; -1: none, and why."""
        if self.denied:
            return []
        if number < 0:
            text = f"{self.decision.name} port {self.decision.port}: {trouble}"
            return self._deny(refused(self.decision, "BWN850", text))
        self.address = self._judged[number]
        if self.way == "http":
            return self._forward()
        return [ToClient(answers.ESTABLISHED), *self._tunnel()]

    def late(self) -> list[Command]:
        """The time for all this is over."""
        if self.denied:
            return [End(True)]
        if self._hello:
            return self._deny(check_hello(self.decision, "NEED_MORE"))
        if self._judged and not self.address:
            return self.dialled(-1, "no answer in time")
        if self.decision.allowed and not self.address:
            return self.resolved(None)
        decision = self.decision if self.decision.name else _broken("no whole request came")
        return self._deny(refused(decision, "BWN844", "the request did not come to its end in time"))

    def reload(self, ruleset: Ruleset) -> list[Command]:
        """Another policy holds from now on, for what is open too."""
        self._ruleset = ruleset
        if self.denied or not self.decision.allowed:
            return []
        decision = decide(ruleset, self.decision.name, self.decision.port)
        if decision.allowed and self.address:
            decision = judge(ruleset, decision, (self.address,)).decision
        return [] if decision.allowed else self._deny(decision)

    # --- the head ---

    def _head(self, data: bytes) -> list[Command]:
        request = self._next_request(data)
        if not isinstance(request, h11.Request):
            return request
        if request.method == b"CONNECT":
            self.way = "transparent" if (b"bawn-way", b"transparent") in request.headers else "connect"
            self._pending = self._requests.trailing_data[0]
            return self._decided(http_head.connect(self._ruleset, request))
        if request.method == b"RESOLVE":
            self.way = "resolve"
            decision, ports = http_head.resolve(self._ruleset, request)
            self.decision = decision
            return [ToClient(answers.listed(ports)), End(False)] if ports else self._deny(decision)
        self.way = "http"
        self._request = http_head.absolute(self._ruleset, request)
        return self._decided(self._request.decision)

    def _next_request(self, data: bytes) -> h11.Request | list[Command]:
        """The request, once its head is whole; until then what to do about it."""
        try:
            self._requests.receive_data(data)
            event = self._requests.next_event()
        except h11.RemoteProtocolError as error:
            return self._deny(self._broken(str(error)))
        if isinstance(event, h11.Request):
            if event.http_version in (b"1.0", b"1.1"):
                return event
            return self._deny(self._broken(f"HTTP/{event.http_version.decode()} is not spoken here"))
        if not data:  # it went away, or asked nothing
            return [End(False)]
        return [Read()]

    def _broken(self, why: str) -> Decision:
        return refused(self.decision, "BWN840", why) if self.decision.name else _broken(why)

    def _decided(self, decision: Decision) -> list[Command]:
        self.decision = decision
        return [Resolve(decision.name)] if decision.allowed else self._deny(decision)

    # --- in a tunnel ---

    def _tunnel(self) -> list[Command]:
        port, pending = self.decision.port, self._pending
        self._pending = b""
        self._requests = http_head.reader()
        if port == _TLS:
            self._hello = HelloReader()
            self._on_data = self._tls
        elif port == _HTTP:
            self._on_data = self._plain
        else:
            self._server_speaks = self.joined = True  # ssh and mail: the server begins
            self._on_data = self._peek
        opened: list[Command] = [Join(0)] if self.joined else []
        return [*opened, *(self._on_data(pending) if pending else [Read()])]

    def _tls(self, data: bytes) -> list[Command]:
        assert self._hello
        self._pending += data
        if not self._pending:  # it went away without a word
            return [End(False)]
        outcome = self._hello.feed(data) if data else self._hello.outcome
        if outcome == "NEED_MORE" and data:
            return [Read()]
        decision = check_hello(self.decision, outcome)
        return self._through() if decision.allowed else self._deny(decision)

    def _plain(self, data: bytes) -> list[Command]:
        request = self._next_request(data)
        if not isinstance(request, h11.Request):
            return request
        self._request = http_head.origin(self.decision, request)
        return self._forward() if self._request.decision.allowed else self._deny(self._request.decision)

    def _peek(self, data: bytes) -> list[Command]:
        """What does the client speak?"""
        self._pending += data
        seen = self._pending
        if seen[:1] == _RECORD_TYPE:
            self._pending = b""
            self._hello = HelloReader()
            self._on_data = self._tls
            return self._tls(seen)
        line = seen.lstrip(b"\r\n")
        if _REQUEST_LINE.match(line):
            self._pending = b""
            self._on_data = self._plain
            return self._plain(line)
        if data and _BEGUN.fullmatch(line) and len(seen) < http_head.LIMIT:
            return [Read()]
        return self._through()

    # --- on to the server ---

    def _forward(self) -> list[Command]:
        """The request, its body as far as it has come, and the way for the rest."""
        if self._request.length < 0:
            self.joined = self._server_speaks = True
            self._on_data = self._chunks
            return [ToServer(self._request.head), Join(0), *self._body()]
        body, left = b"", self._request.length
        while left and isinstance(event := self._requests.next_event(), h11.Data):
            body += event.data
            left -= len(event.data)
        return [ToServer(self._request.head + body), *self._join(left)]

    def _chunks(self, data: bytes) -> list[Command]:
        """More of a body in chunks, which are made anew: as they came they could hide another request."""
        try:
            self._requests.receive_data(data)
            return self._body()
        except h11.RemoteProtocolError as error:
            return self._deny(self._broken(str(error)))

    def _body(self) -> list[Command]:
        done: list[Command] = []
        try:
            while True:
                event = self._requests.next_event()
                if isinstance(event, h11.Data):
                    done.append(ToServer(b"%x\r\n%b\r\n" % (len(event.data), event.data)))
                elif isinstance(event, h11.EndOfMessage):
                    return [*done, ToServer(b"0\r\n\r\n"), *self._join(0)]
                else:
                    return [*done, Read()]
        except h11.RemoteProtocolError as error:
            return self._deny(self._broken(str(error)))

    def _through(self) -> list[Command]:
        pending: list[Command] = [ToServer(self._pending)] if self._pending else []
        return [*pending, *self._join(-1)]

    def _join(self, upload: int) -> list[Command]:
        """The end of looking; what it took is dropped, for there may be many tunnels."""
        self.joined, self._server_speaks = True, False
        self._pending, self._request, self._hello = b"", http_head.NO_REQUEST, None
        self._requests = http_head.NO_READER
        self._on_data = self._nothing
        return [Join(upload)]

    def _nothing(self, data: bytes) -> list[Command]:
        return []

    # --- the end ---

    def _deny(self, decision: Decision) -> list[Command]:
        self.decision, self.denied = decision, True
        in_tunnel = self.address and self.way != "http" and self._on_data != self._plain
        if self.joined or in_tunnel:
            return [End(True)]
        return [ToClient(answers.refusal(decision, self._profile)), End(False)]


def _broken(why: str) -> Decision:
    return Decision(False, "BWN840", why, "", 0)
