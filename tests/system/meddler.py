"""A daemon that makes something else than it was asked to: a socket before dockerd's that rewrites the
request for a container on its way."""

import contextlib
import json
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

Change = Callable[[dict[str, Any]], None]


class Meddler:
    """A context manager; `change` is given the body of every request to create a container."""

    def __init__(self, real: Path, path: Path, change: Change) -> None:
        self.host = f"unix://{path}"
        self._real, self._change = str(real), change
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))

    def __enter__(self) -> "Meddler":
        self._server.listen(32)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            daemon = socket.socket(socket.AF_UNIX)
            daemon.connect(self._real)
            for source, target, rewrite in ((client, daemon, True), (daemon, client, False)):
                threading.Thread(target=self._pass, args=(source, target, rewrite), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, rewrite: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if rewrite and re.match(rb"POST \S*/containers/create", data):
                    data = self._rewritten(data, source)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def _rewritten(self, data: bytes, source: socket.socket) -> bytes:
        while b"\r\n\r\n" not in data:
            data += source.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        assert length, head
        while len(body) < int(length[1]):
            body += source.recv(65536)
        request = json.loads(body)
        self._change(request)
        body = json.dumps(request).encode()
        return head.replace(length[0], b"Content-Length: %d" % len(body)) + b"\r\n\r\n" + body
