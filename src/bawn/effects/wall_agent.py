"""What `bawn wall verify` runs in its throw-away namespaces: somebody who listens, and somebody who asks.

A program of the standard library alone: `python -IS wall_agent.py listen|ask`, JSON on stdin. `listen`
answers whatever comes until its stdin ends, and says "ready" first. `ask` tries every target at once and
prints which of them answered.
"""

import json
import os
import selectors
import socket
import struct
import sys
import time

ETHERTYPE = 0x88B5  # IEEE 802: for local experiments
RAW = 253  # RFC 3692: for experiments
_BROADCAST = b"\xff" * 6
_NAMES = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}


def address_of(address: str, port: int) -> tuple[int, tuple[object, ...]]:
    """(family, what connect() takes); "fe80::1%eth0" names its interface."""
    if ":" not in address:
        return socket.AF_INET, (address, port)
    plain, _, zone = address.partition("%")
    return socket.AF_INET6, (plain, port, 0, socket.if_nametoindex(zone) if zone else 0)


def listen(places: list[list[object]]) -> None:
    """`places`: [proto, address, port]. proto "frame" answers ETHERTYPE frames on the interface `address`,
    "raw" packets of protocol RAW. The number of a place is written out whenever somebody came."""
    with selectors.DefaultSelector() as selector:
        for number, (proto, address, port) in enumerate(places):
            if proto == "frame":
                s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
                s.bind((str(address), ETHERTYPE))
            elif proto == "raw":
                s = socket.socket(socket.AF_INET, socket.SOCK_RAW, RAW)
                s.bind((str(address), 0))
            else:
                family, where = address_of(str(address), int(str(port)))
                s = socket.socket(family, _NAMES[str(proto)])
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(where)
            if proto == "tcp":
                s.listen(16)
            selector.register(s, selectors.EVENT_READ, (number, proto))
        selector.register(0, selectors.EVENT_READ, (-1, "end"))
        os.write(1, b"ready\n")
        while True:
            for key, _ in selector.select():
                number, proto = key.data
                if proto == "end":
                    return
                if _answer(key.fileobj, str(proto)):  # type: ignore[arg-type]
                    os.write(1, f"{number}\n".encode())


def _answer(s: socket.socket, proto: str) -> bool:
    """Answers; False for a packet that was not meant."""
    if proto == "tcp":
        peer, _ = s.accept()
        with peer:
            peer.sendall(b"here")
        return True
    data, peer_address = s.recvfrom(2048)
    asked = {"frame": data[14:18], "raw": data[20:24], "udp": data[:4]}[proto] == b"ask!"
    if asked and proto == "frame":
        s.send(data[6:12] + s.getsockname()[4] + data[12:14] + b"here")
    elif asked:
        s.sendto(b"here", peer_address)
    return asked


def ask(targets: list[list[object]], seconds: float) -> list[bool]:
    """Which of [proto, address, port] answer; each is asked thrice where an answer can be lost."""
    found = [False] * len(targets)
    with selectors.DefaultSelector() as selector:
        open_ones = []
        for number, (proto, address, port) in enumerate(targets):
            try:
                s = _socket(str(proto), str(address), int(str(port)))
            except OSError:  # refused at once: no route, or the packet filter said no
                continue
            open_ones.append((s, str(proto)))
            selector.register(s, selectors.EVENT_READ, (number, proto))
        started, sent = time.monotonic(), 0
        while (left := started + seconds - time.monotonic()) > 0 and selector.get_map():
            if time.monotonic() - started >= sent * seconds / 3:
                sent += 1
                for s, proto in open_ones:
                    _send(s, proto)
            for key, _ in selector.select(min(left, seconds / 3)):
                number, proto = key.data
                if _heard(key.fileobj, proto):  # type: ignore[arg-type]
                    found[number] = True
                    selector.unregister(key.fileobj)
                elif proto == "tcp":
                    selector.unregister(key.fileobj)
        for s, _ in open_ones:
            s.close()
    return found


def _socket(proto: str, address: str, port: int) -> socket.socket:
    if proto == "frame":
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        s.bind((address, ETHERTYPE))
        s.setblocking(False)
        return s
    family, where = address_of(address, port)
    kinds = {"icmp": socket.SOCK_RAW, "raw": socket.SOCK_RAW, **_NAMES}
    number = RAW if proto == "raw" else 0
    if proto == "icmp":
        number = socket.IPPROTO_ICMP if family == socket.AF_INET else socket.IPPROTO_ICMPV6
    s = socket.socket(family, kinds[proto], number)
    s.setblocking(False)
    try:
        s.connect(where)
    except BlockingIOError:
        pass
    except OSError:
        s.close()
        raise
    return s


def _send(s: socket.socket, proto: str) -> None:
    try:
        if proto in ("udp", "raw"):
            s.send(b"ask!")
        elif proto == "frame":
            own = s.getsockname()[4]
            s.send(_BROADCAST + own + struct.pack("!H", ETHERTYPE) + b"ask!")
        elif proto == "icmp":
            six = s.family == socket.AF_INET6
            head = struct.pack("!BBHHH", 128 if six else 8, 0, 0, os.getpid() & 0xFFFF, 1)
            s.send(head if six else head[:2] + struct.pack("!H", _checksum(head)) + head[4:])
    except OSError:  # not a packet left: the target is not reached
        return


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def _heard(s: socket.socket, proto: str) -> bool:
    try:
        data = s.recv(2048)
    except OSError:
        return False
    if proto == "icmp":
        return data[:1] == b"\x81" if s.family == socket.AF_INET6 else data[20:21] == b"\0"
    return {"frame": data[14:18], "raw": data[20:24]}.get(proto, data) == b"here"


if __name__ == "__main__":
    if sys.argv[1] == "listen":
        listen(json.loads(sys.stdin.buffer.readline()))
    else:
        given = json.load(sys.stdin)
        os.write(1, json.dumps(ask(*given)).encode())
