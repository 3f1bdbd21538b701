"""The frames between relay.c and the proxy, as bytes and as values. Sans-io; relay.c says what each means.

Both ends are built together and run on one machine: native byte order, no version.
"""

import os
import struct
from collections.abc import Iterator
from socket import AF_INET, AF_INET6, inet_pton

from bawn.egress.commands import Command, Dial, End, Join, Read, ToClient, ToServer
from bawn.typed import NamedTuple

_HEAD = struct.Struct("=IIQq")  # size, kind, id, value
_DATA, _DIALLED, _LATE, _ENDED, _READ, _CLIENT, _SERVER, _DIAL, _JOIN, _END, _DRAIN = range(1, 12)
_ADDRESS = struct.Struct("=I16s")
_MOVED = struct.Struct("=QQ")
_ERROR = struct.Struct("=i")
LARGEST = 1 << 17  # bytes; relay.c takes no larger one
HOW = ("closed", "failed", "idle")


class Data(NamedTuple):
    id: int
    data: bytes


class Dialled(NamedTuple):
    id: int
    number: int
    trouble: str


class Late(NamedTuple):
    id: int


class Ended(NamedTuple):
    id: int
    how: str
    sent: int  # bytes that the client's side gave, and that reached the server
    received: int


Event = Data | Dialled | Late | Ended


class Reader:
    """Takes the relay's bytes apart."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Event]:
        """Every whole frame. Raises ValueError for what is none: the relay is broken."""
        data = self._rest + data if self._rest else data
        at, end = 0, len(data)
        while end - at >= _HEAD.size:
            size, kind, id, value = _HEAD.unpack_from(data, at)
            if not _HEAD.size <= size <= LARGEST:
                raise ValueError(f"a frame of {size} bytes from the relay")
            if end - at < size:
                break
            yield _event(kind, id, value, data[at + _HEAD.size : at + size])
            at += size
        self._rest = data[at:]


def _event(kind: int, id: int, value: int, body: bytes) -> Event:
    if kind == _DATA:
        return Data(id, body)
    if kind == _DIALLED:
        return Dialled(id, value, os.strerror(_ERROR.unpack(body)[0]) if value < 0 else "")
    if kind == _ENDED:
        return Ended(id, HOW[value], *_MOVED.unpack(body))
    if kind == _LATE:
        return Late(id)
    raise ValueError(f"a frame of kind {kind} from the relay")


def encode(id: int, command: Command) -> bytes:
    """What the relay is to do. `Resolve` is not for it: ValueError."""
    match command:
        case Read():
            return _HEAD.pack(_HEAD.size, _READ, id, 0)
        case ToClient(data):
            return _bytes(_CLIENT, id, data)
        case ToServer(data):
            return _bytes(_SERVER, id, data)
        case Join(upload):
            return _HEAD.pack(_HEAD.size, _JOIN, id, upload)
        case End(reset):
            return _HEAD.pack(_HEAD.size, _END, id, int(reset))
        case Dial(addresses, port):
            body = b"".join(map(_address, addresses))
            return _HEAD.pack(_HEAD.size + len(body), _DIAL, id, port) + body
    raise ValueError(command)


def drain() -> bytes:
    """Accept nothing more."""
    return _HEAD.pack(_HEAD.size, _DRAIN, 0, 0)


def _bytes(kind: int, id: int, data: bytes) -> bytes:
    most = LARGEST - _HEAD.size
    parts = [data[at : at + most] for at in range(0, len(data), most)]
    return b"".join(_HEAD.pack(_HEAD.size + len(part), kind, id, 0) + part for part in parts)


def _address(text: str) -> bytes:
    six = ":" in text
    return _ADDRESS.pack(6 if six else 4, inet_pton(AF_INET6 if six else AF_INET, text))
