"""The relay alone, on loopback, told what to do by a test instead of the proxy. Needs no root.

What it must hold: every byte arrives, in order, both ways; nobody's slowness is another's; memory is
bounded; when the proxy is gone, so is the way.
"""

import contextlib
import hashlib
import os
import resource
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from bawn.egress.commands import Command, Dial, End, Join, Read, ToClient, ToServer
from bawn.egress.serve import frames
from bawn.egress.serve.frames import Data, Dialled, Ended, Event, Late
from bawn.relay import RELAY

pytestmark = pytest.mark.system
MIB = 1 << 20


class Relay:
    """A relay with a brain of the test's: `brain(event)` gives commands. Clients connect to `port`."""

    def __init__(
        self, brain: Callable[[Event], list[Command]], maximum: int = 600, head: int = 30, idle: int = 60
    ) -> None:
        ours, theirs = socket.socketpair()
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = listener.getsockname()[1]
        argv = [RELAY, "0", str(theirs.fileno()), str(maximum), str(head), str(idle), str(listener.fileno())]
        self.process = subprocess.Popen(argv, pass_fds=(theirs.fileno(), listener.fileno()))
        theirs.close()
        listener.close()
        self.control, self.brain = ours, brain
        self.events: list[Event] = []
        self.thread = threading.Thread(target=self._think, daemon=True)
        self.thread.start()

    def _think(self) -> None:
        reader = frames.Reader()
        while data := self.control.recv(1 << 17):
            out = b""
            for event in reader.feed(data):
                self.events.append(event)
                out += b"".join(frames.encode(event.id, command) for command in self.brain(event))
            with contextlib.suppress(BrokenPipeError):  # it was closed meanwhile
                self.control.sendall(out)

    def tell(self, id: int, *commands: Command) -> None:
        self.control.sendall(b"".join(frames.encode(id, command) for command in commands))

    def connect(self) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def ended(self, count: int = 1) -> list[Ended]:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            found = [event for event in self.events if isinstance(event, Ended)]
            if len(found) >= count:
                return found
            time.sleep(0.01)
        raise AssertionError(f"{count} ends were awaited: {self.events}")

    def memory(self) -> int:
        """Bytes resident now."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def close(self) -> None:
        self.control.shutdown(socket.SHUT_RDWR)
        assert self.process.wait(5) == 0
        self.thread.join(5)
        self.control.close()


def to(port: int, *, upload: int = -1, greet: bytes = b"") -> Callable[[Event], list[Command]]:
    """Dials at the first bytes, which go to the server, and joins."""
    seen: dict[int, bytes] = {}

    def brain(event: Event) -> list[Command]:
        match event:
            case Data(id, data):
                seen[id] = data
                return [Dial(("127.0.0.1",), port)]
            case Dialled(id, number, _):
                if number < 0:
                    return [ToClient(b"no"), End(False)]
                first: list[Command] = [ToClient(greet)] if greet else []
                return [*first, ToServer(seen[id]), Join(upload)]
            case Late():
                return [ToClient(b"late"), End(False)]
        return []

    return brain


@pytest.fixture
def server() -> Iterator[Callable[[Callable[[socket.socket], None]], int]]:
    """Starts a threaded server on loopback; its port."""
    open_here: list[socket.socket] = []

    def start(serve: Callable[[socket.socket], None]) -> int:
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        open_here.append(listener)

        def accept() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=run, args=(peer,), daemon=True).start()

        def run(peer: socket.socket) -> None:
            with peer:
                with contextlib.suppress(OSError):
                    serve(peer)

        threading.Thread(target=accept, daemon=True).start()
        return int(listener.getsockname()[1])

    yield start
    for listener in open_here:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.fixture
def relay() -> Iterator[Callable[..., Relay]]:
    made: list[Relay] = []

    def start(*words: object, **options: object) -> Relay:
        made.append(Relay(*words, **options))  # type: ignore[arg-type]
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.close()


def echo(peer: socket.socket) -> None:
    while data := peer.recv(1 << 16):
        peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)


def read_all(sock: socket.socket) -> bytes:
    return b"".join(iter(lambda: sock.recv(1 << 18), b""))


def test_both_ways(server, relay) -> None:  # type: ignore[no-untyped-def]
    one = relay(to(server(echo), greet=b"hello "))
    payload = os.urandom(3 * MIB)
    with one.connect() as client:
        client.sendall(payload[:100])
        sender = threading.Thread(target=lambda: (client.sendall(payload[100:]), client.shutdown(1)))
        sender.start()
        assert read_all(client) == b"hello " + payload
        sender.join()
    (end,) = one.ended()
    assert (end.how, end.sent) == ("closed", len(payload)) and end.received in (
        len(payload),
        len(payload) + 6,
    )


def test_half_close_either_way(server, relay) -> None:  # type: ignore[no-untyped-def]
    """A side that has said everything can still listen."""

    def answers_late(peer: socket.socket) -> None:
        got = read_all(peer)
        time.sleep(0.3)
        peer.sendall(hashlib.sha256(got).hexdigest().encode())

    with relay(to(server(answers_late))).connect() as client:
        client.sendall(b"x" * 300_000)
        client.shutdown(socket.SHUT_WR)
        assert read_all(client).decode() == hashlib.sha256(b"x" * 300_000).hexdigest()

    got: list[bytes] = []

    def ends_first(peer: socket.socket) -> None:
        peer.recv(1)
        peer.shutdown(socket.SHUT_WR)
        got.append(read_all(peer))

    one = relay(to(server(ends_first)))
    with one.connect() as client:
        client.sendall(b"1")
        assert read_all(client) == b""
        time.sleep(0.2)
        client.sendall(b"2" * 100_000)
    one.ended()
    assert got == [b"2" * 100_000] or sum(map(len, got)) == 100_000


def test_slow_reader_is_its_own_problem(server, relay) -> None:  # type: ignore[no-untyped-def]
    """50 clients that read nothing of 64 MiB each; memory stays, and another is served at once."""

    def pours(peer: socket.socket) -> None:
        peer.recv(1)
        block = bytes(MIB)
        for _ in range(64):
            peer.sendall(block)

    one = relay(to(server(pours)))
    quick = relay(to(server(echo)))
    clients = [one.connect() for _ in range(50)]
    for client in clients:
        client.sendall(b"1")
    time.sleep(0.5)
    for which in (one, quick):
        with which.connect() as client:
            started = time.monotonic()
            client.sendall(b"1")
            assert client.recv(1)
            assert time.monotonic() - started < 1
    assert one.memory() < 8 * MIB
    clients[0].settimeout(30)
    got = 0
    while got < 64 * MIB:
        got += len(clients[0].recv(1 << 20))
    for client in clients:
        client.close()


def test_five_hundred_at_once(server, relay) -> None:  # type: ignore[no-untyped-def]
    """All served, none starves beside one that pours; an idle one costs two descriptors, little memory."""
    one = relay(to(server(echo)), maximum=502)
    before = one.memory()
    heavy = one.connect()
    stop = threading.Event()

    def pour() -> None:
        block = bytes(MIB)
        while not stop.is_set():
            heavy.sendall(block)

    def drain() -> None:
        while heavy.recv(1 << 20):
            pass

    threads = [threading.Thread(target=pour, daemon=True), threading.Thread(target=drain, daemon=True)]
    for thread in threads:
        thread.start()
    clients = [one.connect() for _ in range(500)]
    for number, client in enumerate(clients):
        client.sendall(b"%04d" % number)
    for number, client in enumerate(clients):
        assert client.recv(4) == b"%04d" % number
    stop.set()
    threads[0].join(10)
    heavy.shutdown(socket.SHUT_WR)
    threads[1].join(10)
    heavy.close()
    one.ended()
    assert one.memory() - before < 4 * MIB
    assert one.descriptors() < 2 * 500 + 100
    for client in clients:
        client.close()
    one.ended(501)
    deadline = time.monotonic() + 5
    while one.descriptors() > 80 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert one.descriptors() <= 80  # the spare pipes, and its own


def test_more_than_the_maximum_wait(server, relay) -> None:  # type: ignore[no-untyped-def]
    one = relay(to(server(echo)), maximum=4)
    held = [one.connect() for _ in range(4)]
    for client in held:
        client.sendall(b"a")
        assert client.recv(1) == b"a"
    waits = one.connect()
    waits.sendall(b"b")
    waits.settimeout(0.3)
    with pytest.raises(TimeoutError):
        waits.recv(1)
    held[0].close()
    waits.settimeout(5)
    assert waits.recv(1) == b"b"
    for client in [*held, waits]:
        client.close()


def test_ten_gibibytes(server, relay) -> None:  # type: ignore[no-untyped-def]
    """Through one tunnel; every byte counted, a sample of them compared."""
    total = int(os.environ.get("BAWN_BULK_GIB", "10")) << 30
    pattern = os.urandom(4 * MIB)

    # One block after another, whole: what arrives can be compared at any place.
    def whole(peer: socket.socket) -> None:
        peer.recv(1)
        for _ in range(total // len(pattern)):
            peer.sendall(pattern)

    one = relay(to(server(whole)))
    buffer = bytearray(MIB)
    with one.connect() as client:
        client.sendall(b"1")
        got = 0
        while count := client.recv_into(buffer):
            at = got % len(pattern)
            if got >> 28 != (got + count) >> 28:  # one block in 256 MiB
                expected = (pattern + pattern)[at : at + count]
                assert buffer[:count] == expected
            got += count
    assert got == total
    (end,) = one.ended()
    assert end.received == total and one.memory() < 8 * MIB


def test_a_byte_at_a_time(server, relay) -> None:  # type: ignore[no-untyped-def]
    """Before the join, bytes are given one READ at a time; the time for that is bounded."""
    collected: dict[int, bytes] = {}

    def brain(event: Event) -> list[Command]:
        match event:
            case Data(id, data):
                collected[id] = collected.get(id, b"") + data
                return [Read()]
            case Late():
                return [ToClient(b"late"), End(False)]
        return []

    one = relay(brain, head=1)
    with one.connect() as client:
        started = time.monotonic()
        for _ in range(40):
            try:
                client.sendall(b"x")
            except OSError:
                break
            time.sleep(0.05)
            if time.monotonic() - started > 1.5:
                break
        assert read_all(client) == b"late"
        assert time.monotonic() - started < 4
    (got,) = collected.values()
    assert set(got) == {ord("x")} and 5 <= len(got) <= 40


def test_silent_client_and_idle_tunnel(server, relay) -> None:  # type: ignore[no-untyped-def]
    silent = relay(to(server(echo)), head=1)
    with silent.connect() as client:
        assert read_all(client) == b"late"
    idle = relay(to(server(echo)), idle=1)
    with idle.connect() as client:
        client.sendall(b"a")
        assert client.recv(1) == b"a"
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    assert idle.ended()[0].how == "idle"


def test_upload_limit_and_reopening(server, relay) -> None:  # type: ignore[no-untyped-def]
    """Join(n) passes n bytes and no more; what is behind them never reaches the server."""
    got: list[bytes] = []

    def collects(peer: socket.socket) -> None:
        peer.sendall(b"banner")
        while data := peer.recv(1 << 16):
            got.append(data)

    one = relay(to(server(collects), upload=5))
    with one.connect() as client:
        client.sendall(b"first")
        assert client.recv(6) == b"banner"
        client.sendall(b"12345EVIL")
        time.sleep(0.3)
        assert b"".join(got) == b"first12345"
        (id,) = {event.id for event in one.events}
        one.tell(id, Join(-1))
        time.sleep(0.2)
        client.sendall(b"more")
        deadline = time.monotonic() + 5
        while b"more" not in b"".join(got) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert b"".join(got) == b"first12345EVILmore"  # still in the socket, and passed now that it may


def test_the_first_address_to_answer(server, relay) -> None:  # type: ignore[no-untyped-def]
    port = server(echo)

    def brain(event: Event) -> list[Command]:
        match event:
            case Data():
                return [Dial(("::1", "127.0.0.1"), port)]  # nobody listens on ::1
            case Dialled(_, number, trouble):
                return [ToClient(f"{number} {trouble}".encode()), End(False)]
        return []

    with relay(brain).connect() as client:
        client.sendall(b"x")
        assert read_all(client) == b"1 "


def test_nobody_answers(server, relay) -> None:  # type: ignore[no-untyped-def]
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    with relay(to(port)).connect() as client:
        client.sendall(b"x")
        assert read_all(client) == b"no"


def test_the_proxy_gone_is_the_way_gone(server, relay) -> None:  # type: ignore[no-untyped-def]
    """E: it closes, it never opens."""
    one = relay(to(server(echo)))
    client = one.connect()
    client.sendall(b"a")
    assert client.recv(1) == b"a"
    one.control.shutdown(socket.SHUT_RDWR)
    assert one.process.wait(5) == 0
    with pytest.raises((ConnectionResetError, AssertionError)):
        assert client.recv(1)
    client.close()
    with pytest.raises(ConnectionRefusedError):
        one.connect()


@pytest.mark.parametrize("frame", [b"\xff" * 24, bytes(24), b"\x18\0\0\0\x63\0\0\0" + bytes(16)])
def test_frames_that_are_none(server, relay, frame: bytes) -> None:  # type: ignore[no-untyped-def]
    """It ends, or ignores what it does not know; it does not go on with a stream it cannot read."""
    one = relay(to(server(echo)))
    one.control.sendall(frame)
    if frame[0] == 0x18:
        with one.connect() as client:
            client.sendall(b"a")
            assert client.recv(1) == b"a"
    else:
        assert one.process.wait(5) == 0


def test_resets_are_carried(server, relay) -> None:  # type: ignore[no-untyped-def]
    def resets(peer: socket.socket) -> None:
        peer.recv(1)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    one = relay(to(server(resets)))
    with one.connect() as client:
        client.sendall(b"a")
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    assert one.ended()[0].how == "failed"
