"""The program that plays every host of the lab's world: `python -m bawn.proof.servers DIRECTORY`.

It runs in the world's network namespace, says "ready" on stdout once it listens, and ends when stdin
does, so that it never outlives the lab that started it. Whatever reaches it becomes one JSON line of
DIRECTORY/log: {"host", "address", "proto", "port", "peer"}, for DNS with "name" and "type".
"""

import asyncio
import ipaddress
import json
import ssl
import struct
import sys
from collections.abc import Callable
from functools import partial
from typing import BinaryIO, cast

import h11

from bawn.proof import provider, world

_TYPES = {1: "A", 28: "AAAA"}
_NXDOMAIN = 3
_HEAD = struct.Struct("!6H")  # RFC 1035 4.1.1


class Log:
    """Appends a line for each contact, at once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, address: str, proto: str, port: int, peer: str, **more: str) -> None:
        entry = {"host": world.host_at(address), "address": address, "proto": proto, "port": port,
                 "peer": peer, **more}  # fmt: skip
        self._file.write(json.dumps(entry).encode() + b"\n")
        self._file.flush()


class Http(asyncio.Protocol):
    """Answers each request as `host` does, and hangs up: with its name, the provider with its script."""

    def __init__(self, log: Log, host: world.Host, address: str, port: int) -> None:
        self._log, self._host, self._address, self._port = log, host, address, port
        self._read = h11.Connection(h11.SERVER)
        self._request = h11.Request(method="GET", target="/", headers=[("Host", "")])
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._log.write(self._address, "tcp", self._port, str(transport.get_extra_info("peername")[0]))

    def data_received(self, data: bytes) -> None:
        try:
            self._read.receive_data(data)
            while (event := self._read.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Request):
                    self._request = event
                    if self._read.they_are_waiting_for_100_continue:
                        self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                elif isinstance(event, h11.Data):
                    self._body += event.data
                else:
                    self._answer()
                    break
        except h11.RemoteProtocolError:
            self._transport.close()

    def _answer(self) -> None:
        made = provider.Answer(200, "text/plain", f"{self._host.name}\n".encode())
        target = self._request.target.decode("ascii", "replace")
        if self._host.kind == "provider" and target.startswith("/v1/"):
            made = provider.answer(self._request.method.decode(), target, self._body)
        head = (
            f"HTTP/1.1 {made.status} .\r\nContent-Type: {made.kind}\r\nContent-Length: {len(made.body)}\r\n"
        )
        self._transport.write(head.encode() + b"Connection: close\r\n\r\n" + made.body)
        self._transport.close()


class Datagrams(asyncio.DatagramProtocol):
    """Sends back what `reply(data, peer)` makes of each datagram, unless it is empty."""

    def __init__(self, reply: Callable[[bytes, str], bytes]) -> None:
        self._reply = reply

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not an isinstance: asyncio's own class is none of DatagramTransport before 3.12.
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if reply := self._reply(data, addr[0]):
            self._transport.sendto(reply, addr)


class Zone:
    """Authoritative for world.ZONE: NXDOMAIN for every other name, and each question logged."""

    def __init__(self, log: Log, address: str) -> None:
        self._log, self._address = log, address
        self._asked: dict[tuple[str, int], int] = {}

    def answer(self, proto: str, query: bytes, peer: str) -> bytes:
        """The response to one message; b"" where it is none (RFC 1035 4.1)."""
        try:
            ident, flags, questions, *_ = _HEAD.unpack_from(query)
            name, end = _name(query, _HEAD.size)
            kind, _ = struct.unpack_from("!HH", query, end)
        except (struct.error, IndexError, UnicodeDecodeError):
            return b""
        if questions != 1 or flags & 0x8000:
            return b""
        self._log.write(
            self._address, proto, world.DNS_PORT, peer, name=name, type=_TYPES.get(kind, str(kind))
        )
        key = world.zone_entry(name)
        records = [_record(a) for a in self._turn(key, kind) if _kind(a) == kind]
        status = 0 if key else _NXDOMAIN
        head = _HEAD.pack(ident, 0x8400 | flags & 0x0100 | status, 1, len(records), 0, 0)
        return head + query[_HEAD.size : end + 4] + b"".join(records)

    def _turn(self, key: str, kind: int) -> tuple[str, ...]:
        """The answers to this question, which may differ from those to the one before (rebinding)."""
        turns = world.ZONE.get(key, ((),))
        number = self._asked.get((key, kind), 0)
        self._asked[key, kind] = number + 1
        return turns[min(number, len(turns) - 1)]


def _name(query: bytes, at: int) -> tuple[str, int]:
    labels = []
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length].decode("ascii").lower())
        at += 1 + length
    return ".".join(labels), at + 1


def _kind(address: str) -> int:
    return 28 if ":" in address else 1


def _record(address: str) -> bytes:
    data = ipaddress.ip_address(address).packed
    return struct.pack("!HHHIH", 0xC00C, _kind(address), 1, 0, len(data)) + data  # TTL 0


async def _stream(zone: Zone, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """DNS over TCP, one question a connection (RFC 7766)."""
    try:
        size = struct.unpack("!H", await reader.readexactly(2))[0]
        reply = zone.answer("dns-tcp", await reader.readexactly(size), writer.get_extra_info("peername")[0])
        if reply:
            writer.write(struct.pack("!H", len(reply)) + reply)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def serve(directory: str, log: Log) -> None:
    """Listens everywhere, says so, and waits for the end of stdin."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(f"{directory}/server.pem", f"{directory}/server.key")
    for host in world.HOSTS:
        for address in host.addresses:
            await _play(host, address, tls, log)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.buffer.read)


async def _play(host: world.Host, address: str, tls: ssl.SSLContext, log: Log) -> None:
    """All services of one host at one address."""
    loop = asyncio.get_running_loop()

    def echo(port: int) -> Datagrams:
        def reply(data: bytes, peer: str) -> bytes:
            log.write(address, "udp", port, peer)
            return data

        return Datagrams(reply)

    for port in world.TCP_PORTS:
        context = tls if port == 443 else None
        await loop.create_server(
            partial(Http, log, host, address, port), address, port, ssl=context, backlog=1024
        )
    for port in world.UDP_PORTS:
        await loop.create_datagram_endpoint(partial(echo, port), local_addr=(address, port))
    if host.kind == "resolver":
        zone = Zone(log, address)
        question, at = partial(zone.answer, "dns-udp"), (address, world.DNS_PORT)
        await loop.create_datagram_endpoint(partial(Datagrams, question), local_addr=at)
        await asyncio.start_server(partial(_stream, zone), *at)


if __name__ == "__main__":
    with open(f"{sys.argv[1]}/log", "ab") as file:
        asyncio.run(serve(sys.argv[1], Log(file)))
