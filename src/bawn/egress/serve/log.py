"""The record of decisions: one JSON object a line, appended to a file that bawn opened."""

import json
import os
import time

from bawn.evidence.events import Passage

HELD = 1 << 16  # bytes of lines that wait to be written together


class Log:
    """Lines that are written together, for a write costs as much as a decision."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lines = bytearray()

    def add(self, passage: Passage) -> None:
        line = json.dumps(passage._asdict(), ensure_ascii=False, separators=(",", ":"))
        self._lines += line.encode(errors="replace") + b"\n"
        if len(self._lines) > HELD:
            self.write()

    def write(self) -> None:
        """Raises OSError: what is not recorded does not pass, and the proxy ends."""
        while self._lines:
            del self._lines[: os.write(self._fd, self._lines)]


def utc_now() -> str:
    """RFC 3339, UTC, milliseconds."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
