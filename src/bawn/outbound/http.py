"""HTTP/1.1 as far as the guard's service speaks it: bytes -> requests, answers -> bytes. Pure, sans-io.

Strict: whatever two readers could take differently (RFC 9112, request smuggling) is a 400. A body has
a Content-Length and nothing else; no chunks, no folding, no upgrade.
"""

import json
import re

from bawn.typed import Any, NamedTuple

MAX_HEAD = 16 << 10  # bytes
MAX_BODY = 4 << 20  # bytes
_MAX_HEADERS = 64
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_TARGET = re.compile(rb"/[!-~]{0,1024}")
_ONCE = frozenset(("content-length", "content-type", "host", "expect", "connection"))
_WORDS = {
    200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout",
    411: "Length Required", 413: "Content Too Large", 415: "Unsupported Media Type",
    417: "Expectation Failed", 431: "Request Header Fields Too Large", 500: "Internal Server Error",
    501: "Not Implemented", 503: "Service Unavailable", 505: "HTTP Version Not Supported",
}  # fmt: skip
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Refused(Exception):
    """The request cannot be answered but with this status; the connection ends with it."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Head(NamedTuple):
    """A request before its body. `length`: bytes of the body."""

    method: str
    target: str
    headers: dict[str, str]
    length: int
    keep: bool  # another request may follow
    expect: bool  # the client waits for CONTINUE


def head(data: bytes) -> tuple[Head, int] | None:
    """The head that `data` begins with, and its length; None while it is not whole. Raises Refused."""
    end = data.find(b"\r\n\r\n", 0, MAX_HEAD + 4)
    if end < 0:
        if len(data) > MAX_HEAD:
            raise Refused(431, f"a head of more than {MAX_HEAD} bytes")
        if b"\n\n" in data or b"\0" in data:
            raise Refused(400, "a head whose lines do not end in CR LF")
        return None
    first, *lines = data[:end].split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or not _NAME.fullmatch(words[0]) or not _TARGET.fullmatch(words[1]):
        raise Refused(400, "no request line")
    if words[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise Refused(505 if words[2].startswith(b"HTTP/") else 400, "HTTP/1.1 is spoken here")
    headers = _headers(lines)
    newer = words[2] == b"HTTP/1.1"
    if newer and "host" not in headers:
        raise Refused(400, "no Host")
    if "transfer-encoding" in headers:
        raise Refused(501, "a body has a Content-Length")
    expect = headers.get("expect", "").lower()
    if expect not in ("", "100-continue"):
        raise Refused(417, "an unknown Expect")
    method = words[0].decode()
    length = _length(headers, method)
    keep = newer and headers.get("connection", "").lower() != "close"
    return Head(method, words[1].decode(), headers, length, keep, bool(expect)), end + 4


def _headers(lines: list[bytes]) -> dict[str, str]:
    if len(lines) > _MAX_HEADERS:
        raise Refused(431, f"more than {_MAX_HEADERS} header fields")
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise Refused(400, "a header field that is none")
        key = name.decode().lower()
        if key in found and key in _ONCE:
            raise Refused(400, f"{key} twice")
        found[key] = value.decode("latin-1").strip(" \t")
    return found


def _length(headers: dict[str, str], method: str) -> int:
    text = headers.get("content-length")
    if text is None:
        if method in ("POST", "PUT", "PATCH"):
            raise Refused(411, "no Content-Length")
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Refused(400, "a Content-Length that is no number")
    if int(text) > MAX_BODY:
        raise Refused(413, f"a body of more than {MAX_BODY} bytes")
    return int(text)


def body(content_type: str, data: bytes) -> Any:
    """What a body says: JSON's data, or the text itself. Raises Refused."""
    kind = content_type.partition(";")[0].strip().lower()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Refused(400, "the body is not UTF-8") from None
    if kind == "text/plain":
        return text
    if kind != "application/json":
        raise Refused(415, "application/json or text/plain")
    try:
        return parse_json(text)
    except ValueError as error:
        raise Refused(400, str(error)) from None


def parse_json(text: str) -> Any:
    """JSON in which no key stands twice: another reader might take the other one. Raises ValueError."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise ValueError("a key stands twice in one object")
        return made

    try:
        return json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at {error.pos}") from None
    except RecursionError:
        raise ValueError("JSON that is nested too deep") from None


def answer(status: int, data: Any, keep: bool) -> bytes:
    content = json.dumps(data, separators=(",", ":")).encode()
    connection = "keep-alive" if keep else "close"
    return (
        f"HTTP/1.1 {status} {_WORDS[status]}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\nConnection: {connection}\r\n\r\n"
    ).encode() + content
