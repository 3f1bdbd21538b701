"""A fake proxy on a Unix socket, and a box that has it as its way out.

The proxy speaks what a box and bawn's own proxy have agreed on, decides by a table, and keeps a list
of everything that it was asked. `python way_world.py DIRECTORY ENGINE IMAGE COMMAND...` is what the
tests run as a person: a plan as `bawn run` makes it, given to the engine with the way out.
"""

import contextlib
import hashlib
import os
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

BACKLOG = 1024
Service = Callable[[socket.socket], None]


def http(peer: socket.socket) -> None:
    """One answer."""
    head = _head(peer)
    host = next((line[6:] for line in head.decode().split("\r\n") if line.lower().startswith("host: ")), "?")
    _answer(peer, f"hello {host}\n")


def echo(peer: socket.socket) -> None:
    while data := peer.recv(65536):
        peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)


def digest(peer: socket.socket) -> None:
    """Reads to the end, and only then says what it was: needs half-close."""
    seen, size = hashlib.sha256(), 0
    while data := peer.recv(65536):
        seen.update(data)
        size += len(data)
    peer.sendall(f"{size} {seen.hexdigest()}\n".encode())


def flood(peer: socket.socket) -> None:
    """More than all buffers between here and a client hold."""
    for _ in range(64):
        peer.sendall(b"x" * (1 << 20))


def push(peer: socket.socket) -> None:
    """Speaks first, in the same write as the proxy's own answer."""
    peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n220 ready\r\n")


def mute(peer: socket.socket) -> None:
    """Reads and says nothing, for as long as the client stays."""
    while peer.recv(65536):
        pass


def refuse(peer: socket.socket) -> None:
    """Instead of the proxy's 200: what its decision is when a list has changed, or an address is bad."""
    _answer(peer, "denied BWN820\n", "403 Forbidden")


def babble(peer: socket.socket) -> None:
    """No head at all."""
    peer.sendall(b"x" * 9000)


LISTED: dict[str, dict[int, Service]] = {
    "web.test": {80: http, 443: http},
    "api.test": {443: echo, 8443: digest, 9000: flood, 25: push, 7: mute, 13: refuse, 14: babble},
    **{f"n{i}.many.test": {443: echo} for i in range(40)},
}


class Proxy:
    """`with Proxy(directory, uid, gid) as proxy`: listens at directory/proxy.sock, mode 0600."""

    def __init__(self, directory: Path, uid: int, gid: int) -> None:
        self.directory, self._owner = directory, (uid, gid)
        self.asked: list[str] = []  # request lines, with the Bawn-Way field
        self.delay = 0.0  # before any answer
        self.stalled = False  # accepts nothing more
        self.open: set[socket.socket] = set()
        self.most = 0  # connections at one time
        self._server = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> "Proxy":
        self.directory.mkdir(mode=0o700)
        path = self.directory / "proxy.sock"
        self._server.bind(str(path))
        path.chmod(0o600)
        for made in (self.directory, path):
            os.chown(made, *self._owner)
        self._server.listen(BACKLOG)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.die()
        shutil.rmtree(self.directory, ignore_errors=True)

    def die(self) -> None:
        """As kill -9 would: nothing listens, everything is closed."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for peer in list(self.open):
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._server.accept()
            except OSError:
                return
            while self.stalled:
                time.sleep(0.05)
            self.open.add(peer)
            self.most = max(self.most, len(self.open))
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError), peer:
            head = _head(peer)
            if not head:
                return
            line, *fields = head.decode().split("\r\n")
            way = next((f"  {f}" for f in fields if f.startswith("Bawn-Way: ")), "")
            self.asked.append(line + way)
            time.sleep(self.delay)
            self._decide(peer, *line.split(" ")[:2])
        self.open.discard(peer)

    def _decide(self, peer: socket.socket, method: str, target: str) -> None:
        if method == "RESOLVE":
            if target == "broken.test":
                return peer.sendall(b"HTTP/1.1 200 OK\r\nBawn-Ports: none\r\n\r\n")
            if ports := LISTED.get(target):
                text = ",".join(str(p) for p in sorted(ports))
                return peer.sendall(f"HTTP/1.1 200 OK\r\nBawn-Ports: {text}\r\n\r\n".encode())
        elif method == "CONNECT":
            name, _, port = target.rpartition(":")
            if service := LISTED.get(name, {}).get(int(port)):
                if service in (push, refuse, babble):
                    return service(peer)
                peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                return service(peer)
        elif (name := target.removeprefix("http://").partition("/")[0]) in LISTED:
            return _answer(peer, f"hello {name} by proxy\n")
        _answer(peer, "denied BWN801\n", "403 Forbidden")


def _head(peer: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        one = peer.recv(1)
        if not one:
            return b""
        head += one
    return head[:-4]


def _answer(peer: socket.socket, text: str, status: str = "200 OK") -> None:
    peer.sendall(
        f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n{text}".encode()
    )


def main(directory: str, engine: str, image: str, *command: str) -> int:
    """Runs the command in a box whose way out is the proxy in `directory`."""
    from bawn.cli.prepare import Wanted, prepare, say
    from bawn.effects import docker, gvisor
    from bawn.effects.names import new_run_id
    from bawn.effects.no_way import NoWay
    from bawn.errors import BawnError
    from bawn.evidence.events import Silent
    from bawn.plan.model import EnvVar
    from bawn.plan.way import VARIABLES

    ready = prepare(Wanted(engine=engine, image=image, quiet=True), command)
    if ready.plan.errors:
        say(str(ready.plan.errors))
        return 2

    class Door(NoWay):
        """The way out is there already: the tests' proxy has it."""

        door = directory

    values = dict(VARIABLES) | {v.name: v.value for v in ready.plan.env}
    plan = ready.plan._replace(env=tuple(sorted(EnvVar(name, value) for name, value in values.items())))
    gvisor.way_of = lambda *_: Door()  # both engines ask it
    run = docker.run if engine == "docker" else gvisor.run
    try:
        done = run(plan, ready.facts, new_run_id(), tty=False, secrets={}, observer=Silent())
    except BawnError as error:
        say(error.message)
        return error.exit_code
    return done.exit


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
