"""The TLS ClientHello, read as it comes, and held to the name that was asked for. Sans-io.

RFC 8446 4.1.2 and 5.1, RFC 5246 7.4.1.2: records, in them a handshake message, in it extensions.
Only what a decision needs is read, but all of it must be well formed: two readers that differ on
a broken hello are how a name is smuggled past one of them.
"""

from bawn.egress.decide import Decision, refused
from bawn.typed import Literal, NamedTuple

Trouble = Literal["NEED_MORE", "NOT_TLS", "MALFORMED"]
# A hello with post-quantum key shares has about 2 KiB, with a large session ticket 10.
LIMIT = 32 << 10  # bytes on the wire, all records together
_RECORD = 1 << 14  # RFC 8446 5.1
_HANDSHAKE, _CLIENT_HELLO, _TLS = 22, 1, 3
_SERVER_NAME, _HOST_NAME = 0, 0  # RFC 6066 3
_ENCRYPTED = (0xFE0D, 0xFFCE)  # RFC 9849; its forerunner, encrypted_server_name


class Hello(NamedTuple):
    """`sni` is "" where the hello names no host."""

    sni: str
    ech: bool


class _Malformed(Exception):
    pass


class HelloReader:
    """Fed what a client sends until it says something other than NEED_MORE; then it stays so.

    Keeps at most LIMIT bytes. What follows the hello (early data) is the caller's: whoever feeds
    keeps the bytes to pass on.
    """

    def __init__(self) -> None:
        self.outcome: Hello | Trouble = "NEED_MORE"
        self._wire = bytearray()  # not yet taken apart
        self._message = bytearray()
        self._seen = 0

    def feed(self, data: bytes) -> Hello | Trouble:
        """Never raises; each byte is looked at a bounded number of times."""
        if self.outcome != "NEED_MORE":
            return self.outcome
        room = LIMIT - self._seen
        self._wire += data[:room]
        self._seen += min(len(data), room)
        try:
            self.outcome = self._read()
        except _Malformed:
            self.outcome = "MALFORMED"
        if self.outcome == "NEED_MORE" and self._seen >= LIMIT:
            self.outcome = "MALFORMED"
        return self.outcome

    def _read(self) -> Hello | Trouble:
        wire = self._wire
        while wire:
            if wire[0] != _HANDSHAKE or (len(wire) > 1 and wire[1] != _TLS):
                if self._message:
                    raise _Malformed  # another record in the midst of the hello
                return "NOT_TLS"
            if len(wire) < 5:
                break
            length = int.from_bytes(wire[3:5])
            if not 0 < length <= _RECORD:
                raise _Malformed
            if len(wire) < 5 + length:
                break
            self._message += wire[5 : 5 + length]
            del wire[: 5 + length]
            if done := self._whole():
                return done
        return "NEED_MORE"

    def _whole(self) -> Hello | None:
        message = self._message
        if message[0] != _CLIENT_HELLO:
            raise _Malformed
        if len(message) < 4:
            return None
        length = int.from_bytes(message[1:4])
        if length > LIMIT or len(message) > 4 + length:  # RFC 8446 5.1: nothing behind it in its record
            raise _Malformed
        return _parse(bytes(message[4:])) if len(message) == 4 + length else None


class _Bytes:
    """What is left of a structure; asked for more than there is, it is malformed."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            raise _Malformed
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def vector(self, width: int) -> bytes:
        """A vector with its length before it, in `width` bytes."""
        return self.take(int.from_bytes(self.take(width)))

    def left(self) -> bool:
        return self.at < len(self.data)


def _parse(body: bytes) -> Hello:
    hello = _Bytes(body)
    if hello.take(2)[0] != _TLS:
        raise _Malformed
    hello.take(32)  # random
    session, suites, compressions = hello.vector(1), hello.vector(2), hello.vector(1)
    if len(session) > 32 or not suites or len(suites) % 2 or not compressions:
        raise _Malformed
    if not hello.left():  # RFC 5246: extensions may be missing
        return Hello("", False)
    extensions = _Bytes(hello.vector(2))
    if hello.left():
        raise _Malformed
    found: dict[int, bytes] = {}
    while extensions.left():
        kind, value = int.from_bytes(extensions.take(2)), extensions.vector(2)
        if kind in found:  # RFC 8446 4.2
            raise _Malformed
        found[kind] = value
    sni = _server_name(found[_SERVER_NAME]) if _SERVER_NAME in found else ""
    return Hello(sni, any(kind in found for kind in _ENCRYPTED))


def _server_name(value: bytes) -> str:
    """RFC 6066 3: one host name, ASCII; no other type of name was ever defined."""
    extension = _Bytes(value)
    names = _Bytes(extension.vector(2))
    kind, name = names.take(1)[0], names.vector(2)
    if extension.left() or names.left() or kind != _HOST_NAME or not name or not name.isascii():
        raise _Malformed
    return name.decode("ascii")


_TROUBLE = {
    "NEED_MORE": ("BWN835", "the TLS hello is not complete"),
    "NOT_TLS": ("BWN833", "the client does not speak TLS"),
    "MALFORMED": ("BWN834", "the TLS hello breaks the protocol"),
}


def check_hello(decision: Decision, outcome: Hello | Trouble) -> Decision:
    """The allowed `decision`, if the hello names just its name; else a denial.

    Asked with NEED_MORE when the time for the hello is over. A second hello (after the server's
    HelloRetryRequest) is not seen here: RFC 8446 4.1.2 has the server hold it to the first.
    """
    if not decision.allowed:
        return decision
    if not isinstance(outcome, Hello):
        rule, reason = _TROUBLE[outcome]
        return refused(decision, rule, f"{decision.name}: {reason}")
    if outcome.ech:
        return refused(decision, "BWN832", f"{decision.name}: the TLS hello is encrypted (ECH)")
    if not outcome.sni:
        return refused(decision, "BWN831", f"{decision.name}: the TLS hello names no host")
    if outcome.sni.lower() != decision.name:  # RFC 6066 3: ASCII, and no final dot
        reason = f"asked for {decision.name}, the TLS hello names {outcome.sni[:80]!r}"
        return refused(decision, "BWN830", reason)
    return decision
