"""`host:port` as a client writes it (RFC 9110 7.2, RFC 9112 3.2.3), read so that doubt is an error."""

from bawn.policy.hosts import is_port
from bawn.typed import NamedTuple


class Authority(NamedTuple):
    """`problem` says why there is no host and port in it; port is 0 then."""

    host: str
    port: int
    problem: str = ""


def parse_authority(text: str, default: int = 0) -> Authority:
    """`default` is the port where none is written; 0 where one must be (CONNECT: RFC 9110 9.3.6).

    IPv6 stands in brackets. A user before `@` is refused: RFC 9110 4.2.4, it makes one host look
    like another.
    """
    if not text:
        return Authority("", 0, "no host")
    if "@" in text:
        return Authority("", 0, "a user before the host")
    if any(char in "/\\?#" or char.isspace() or not char.isprintable() for char in text):
        return Authority("", 0, "not host:port alone")
    head, bracket, tail = text.rpartition("]")
    host, colon, port = tail.partition(":")
    host = head + bracket + host
    if not host:
        return Authority("", 0, "no host")
    if bracket and (tail[:1] not in ("", ":") or not text.startswith("[")):
        return Authority("", 0, "brackets that are not around the host")
    if ":" in port:
        return Authority("", 0, "more than one colon: an IPv6 address stands in brackets")
    if not colon:
        return Authority(host, default) if default else Authority("", 0, "no port")
    if not is_port(port):
        return Authority("", 0, f"no port ({port[:20]!r}): 1 to 65535")
    return Authority(host, int(port))
