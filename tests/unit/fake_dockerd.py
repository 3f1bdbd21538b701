"""A server on a Unix socket that answers what a test tells it to: (method, url) -> (status, body)."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

Answers = dict[tuple[str, str], tuple[int, bytes]]


class FakeDockerd:
    """A context manager. `asked` are the questions so far; `raw` answers everything with those bytes,
    `hang` with nothing."""

    def __init__(self, directory: Path, answers: Answers | None = None, raw: bytes | None = None) -> None:
        self.path = str(directory / "d.sock")
        self.asked: list[tuple[str, str]] = []
        self.answers = answers or {}
        self._raw = raw
        self._server = socket.socket(socket.AF_UNIX)
        self._held: list[socket.socket] = []
        self.hang = False

    def __enter__(self) -> "FakeDockerd":
        self._server.bind(self.path)
        self._server.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)  # wakes the accept
        self._thread.join()
        self._server.close()
        for connection in self._held:
            connection.close()

    def _serve(self) -> None:
        for connection in self._accepted():
            head = connection.recv(65536).split(b"\r\n")[0].decode()
            method, url, _ = head.split(" ")
            self.asked.append((method, url))
            if self.hang:
                self._held.append(connection)
                continue
            status, body = self.answers.get((method, url.partition("?")[0]), (404, b'{"message": "none"}'))
            answer = (
                self._raw if self._raw is not None else f"HTTP/1.0 {status} X\r\nA: b\r\n\r\n".encode() + body
            )
            with contextlib.suppress(OSError):  # the client has heard enough
                for byte in range(0, len(answer), 7):  # in pieces
                    connection.sendall(answer[byte : byte + 7])
            connection.close()

    def _accepted(self) -> Iterator[socket.socket]:
        while True:
            try:
                yield self._server.accept()[0]
            except OSError:
                return
