"""HTTP/1.0 over a Unix socket: all that bawn needs of dockerd's API.

`http.client` and `socket` cost 45 ms to import, ten times what an answer takes. HTTP/1.0, so that
the body simply ends where the connection does. `_socket` is what `socket` wraps.
"""

from _socket import AF_UNIX, SOCK_CLOEXEC, SOCK_STREAM
from _socket import socket as Socket

from bawn.errors import HostError
from bawn.typed import NamedTuple

CAP = 16 << 20  # bytes of one answer


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: bytes


def ask(path: str, method: str, url: str, timeout: float = 10.0, body: bytes = b"") -> Answer:
    """One question to the server at the socket `path`, with JSON as its `body`; `timeout` is seconds for
    all of it.

    Raises HostError when it cannot be reached, is late, or does not speak HTTP.
    """
    import time

    deadline = time.monotonic() + timeout
    connection, status, answer = start(path, method, url, timeout, body)
    try:
        while data := connection.recv(1 << 16):
            answer += data
            if len(answer) > CAP:
                raise HostError(f"the answer of {path} to {url} is larger than {CAP} bytes")
            connection.settimeout(max(0.001, deadline - time.monotonic()))
    except OSError as error:
        raise _silent(path, error) from None
    finally:
        connection.close()
    return Answer(status, answer)


def start(
    path: str, method: str, url: str, timeout: float = 10.0, body: bytes = b""
) -> tuple[Socket, int, bytes]:
    """Asks, and reads the head of the answer: (connection, status, what of the body came with it).

    Raises HostError.
    """
    connection = Socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)
    try:
        connection.settimeout(timeout)
        connection.connect(path)
        kind = "Content-Type: application/json\r\n" if body else ""
        fields = f"Host: docker\r\n{kind}Content-Length: {len(body)}\r\n\r\n"
        connection.sendall(f"{method} {url} HTTP/1.0\r\n{fields}".encode() + body)
        head = b""
        while b"\r\n\r\n" not in head:
            data = connection.recv(1 << 16)
            if not data or len(head) > 1 << 16:
                raise HostError(f"what answers at {path} does not speak HTTP")
            head += data
    except OSError as error:
        connection.close()
        raise _silent(path, error) from None
    except HostError:
        connection.close()
        raise
    head, _, rest = head.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        connection.close()
        raise HostError(f"what answers at {path} does not speak HTTP: {head[:60]!r}")
    return connection, int(words[1]), rest


def _silent(path: str, error: OSError) -> HostError:
    reason = "it is late" if isinstance(error, TimeoutError) else error.strerror or str(error)
    return HostError(f"no answer at {path}: {reason}")


def quote(text: str) -> str:
    """Percent-encoding of everything but what RFC 3986 leaves unreserved."""
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
    return "".join(chr(b) if b in plain else f"%{b:02X}" for b in text.encode(errors="surrogateescape"))
