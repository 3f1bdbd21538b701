"""What a conversation asks for. Values; `egress.serve.frames` turns those of sockets into bytes."""

from bawn.typed import NamedTuple


class Read(NamedTuple):
    """The client's next bytes, once."""


class ToClient(NamedTuple):
    data: bytes


class ToServer(NamedTuple):
    data: bytes


class Resolve(NamedTuple):
    """Both families' addresses of a name that is allowed."""

    name: str


class Dial(NamedTuple):
    """One of these checked addresses, whichever answers first (RFC 8305)."""

    addresses: tuple[str, ...]
    port: int


class Join(NamedTuple):
    """Bytes pass by themselves from now on: all of the server's, `upload` of the client's."""

    upload: int  # -1: all; 0: none, until it is said again


class End(NamedTuple):
    reset: bool  # so that a client does not take it for the server's own end


Command = Read | ToClient | ToServer | Resolve | Dial | Join | End
