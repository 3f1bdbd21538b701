"""The control socket of a run's proxy: one JSON line in, one out.

It lies in a directory that only the person who runs bawn can enter: who can connect may change the
policy. A configuration that cannot be read leaves the old one in force.
"""

import asyncio
import json

from bawn.egress.config import load
from bawn.egress.serve.server import Server
from bawn.errors import PolicyError
from bawn.typed import Any

LONGEST = 8 << 20  # bytes of a line: ten thousand patterns have about one
PATIENCE = 10.0  # seconds


class Control:
    """Answers `status` and `reload CONFIG`."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                line = await reader.readline()
            writer.write(json.dumps(self._answer(line)).encode() + b"\n")
            await writer.drain()
        except (OSError, TimeoutError, ValueError):
            pass
        finally:
            writer.close()

    def _answer(self, line: bytes) -> dict[str, Any]:
        verb, _, rest = line.strip().partition(b" ")
        if verb == b"status":
            return self._server.status()
        if verb != b"reload":
            return {"error": "not status and not reload"}
        try:
            return {"ended": self._server.reload(load(rest))}
        except PolicyError as error:
            return {"error": error.message}
