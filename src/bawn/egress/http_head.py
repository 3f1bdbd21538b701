"""An HTTP request for another host, checked and made ready to be passed on. Sans-io.

h11 reads the head and refuses what RFC 9112 does; what it lets pass and two servers could read in two
ways is refused here. The request goes on as the target's own (origin-form), one to a connection:
`Connection: close`, so that nothing behind its body can be a second request for another host.
"""

import h11

from bawn.egress.authority import parse_authority
from bawn.egress.decide import Decision, Ruleset, decide, decide_authority, listed_ports, refused
from bawn.policy import hosts
from bawn.typed import NamedTuple

LIMIT = 16 << 10  # bytes of a head; h11's own default, and what nginx and Apache allow about
PORT = 80
# RFC 9110 7.6.1, and what clients send to proxies by custom.
_HOP = {b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"te", b"upgrade", b"via"}


class Request(NamedTuple):
    """`head` is what the server gets. `length` of the body: bytes, -1 for chunks."""

    decision: Decision
    head: bytes = b""
    length: int = 0


NO_REQUEST = Request(Decision(False, "BWN840", "nothing was asked for", "", 0))


def reader() -> h11.Connection:
    """For one request; raises h11.RemoteProtocolError as it is fed."""
    return h11.Connection(h11.SERVER, max_incomplete_event_size=LIMIT)


def absolute(ruleset: Ruleset, request: h11.Request) -> Request:
    """A request to the proxy itself: the target names the host (RFC 9112 3.2.2), and Host the same."""
    target = request.target.decode("ascii", "replace")
    scheme, slashes, rest = target.partition("://")
    if scheme.lower() != "http" or not slashes:
        what = "use CONNECT for https" if scheme.lower() == "https" else "not http://host/path"
        return Request(_malformed("BWN843", f"{target[:80]!r}: {what}"))
    at = min((rest.find(c) for c in "/?#" if c in rest), default=len(rest))
    decision = decide_authority(ruleset, rest[:at], PORT)
    path = rest[at:] if rest[at:].startswith("/") else f"/{rest[at:]}"
    return _checked(decision, request, path)


def origin(decision: Decision, request: h11.Request) -> Request:
    """A request in a tunnel to a host that is decided on already."""
    target = request.target.decode("ascii", "replace")
    if not target.startswith("/") and not (target == "*" and request.method == b"OPTIONS"):
        return Request(refused(decision, "BWN843", f"{target[:80]!r}: not a path (RFC 9112 3.2.1)"))
    return _checked(decision, request, target)


def _checked(decision: Decision, request: h11.Request, path: str) -> Request:
    if not decision.allowed:
        return Request(decision)
    named = [value.decode("ascii", "replace") for name, value in request.headers if name == b"host"]
    if len(named) != 1 or not _same(decision, named[0]):
        said = ", ".join(repr(name[:80]) for name in named) or "none"
        return Request(
            refused(decision, "BWN841", f"asked for {decision.name}:{decision.port}, Host: {said}")
        )
    if "#" in path or not path.isascii():
        return Request(refused(decision, "BWN840", f"{path[:80]!r}: not a path (RFC 9112 3.2.1)"))
    lengths = [value for name, value in request.headers if name == b"content-length"]
    codings = [value for name, value in request.headers if name == b"transfer-encoding"]
    if len(lengths) > 1 or len(codings) > 1 or (lengths and codings):  # RFC 9112 6.3: smuggling
        return Request(refused(decision, "BWN842", f"{decision.name}: lengths that contradict each other"))
    if codings and request.http_version != b"1.1":  # RFC 9112 6.1
        return Request(refused(decision, "BWN842", f"{decision.name}: chunks in HTTP/1.0"))
    return Request(decision, _head(request, path), -1 if codings else int(lengths[0]) if lengths else 0)


def _same(decision: Decision, host: str) -> bool:
    """Whether a Host header means the host and port that were decided on (RFC 9110 7.2)."""
    authority = parse_authority(host, PORT)
    if authority.problem:
        return False
    return hosts.normalise(authority.host).name == decision.name and authority.port == decision.port


def _head(request: h11.Request, path: str) -> bytes:
    named = b",".join(value for name, value in request.headers if name == b"connection")
    dropped = _HOP | {token.strip().lower() for token in named.split(b",")}
    # What frames the message is not a client's to name there (RFC 9110 7.6.1).
    dropped -= {b"host", b"content-length", b"transfer-encoding"}
    lines = [request.method + b" " + path.encode("ascii") + b" HTTP/1.1"]
    kept = [pair for pair in request.headers.raw_items() if pair[0].lower() not in dropped]
    lines += [b": ".join(pair) for pair in kept]
    return b"\r\n".join([*lines, b"Connection: close", b"Via: 1.1 bawn", b"", b""])


def _malformed(rule: str, reason: str) -> Decision:
    return Decision(False, rule, reason, "", 0)


def connect(ruleset: Ruleset, request: h11.Request) -> Decision:
    """CONNECT host:port (RFC 9110 9.3.6). It has no body, and a Host that is there says the same."""
    target = request.target.decode("ascii", "replace")
    decision = decide_authority(ruleset, target)
    framed = {b"content-length", b"transfer-encoding"}
    if any(name in framed and value != b"0" for name, value in request.headers):
        return refused(decision, "BWN842", "a CONNECT with a body")
    for name, value in request.headers:
        if name == b"host" and decision.allowed:
            said = parse_authority(value.decode("ascii", "replace"), decision.port)
            if hosts.normalise(said.host).name != decision.name:  # some clients leave the port out
                return refused(decision, "BWN841", f"asked for {target[:80]}, Host: {value[:80]!r}")
    return decision


def resolve(ruleset: Ruleset, request: h11.Request) -> tuple[Decision, tuple[int, ...]]:
    """RESOLVE name: what the resolver in the box asks (way.c): which ports of it are listed."""
    name = request.target.decode("ascii", "replace")
    ports = listed_ports(ruleset, name)
    return decide(ruleset, name, ports[0] if ports else hosts.DEFAULT_PORT), ports


NO_READER = reader()  # of conversations that need none any more
