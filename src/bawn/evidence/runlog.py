"""The run log: one JSON object a line, appended, in bawn's state directory (`runs.jsonl`).

A line is one `write` to a file opened with O_APPEND, so that several bawns at once do not mix
(POSIX write(2); a line is far below any pipe or page limit that matters for regular files).
"""

import json
import os
import time
from collections.abc import Iterator

from bawn.errors import HostError
from bawn.evidence.events import Ended, Started
from bawn.typed import Any


def utc_now() -> str:
    """RFC 3339, UTC, milliseconds."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"


def append(state: str, event: Started | Ended) -> None:
    """Appends the event to the log below `state`. Raises HostError: what is not logged is not run."""
    data = {"event": type(event).__name__.lower(), **event._asdict()}
    line = json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"
    path = f"{state}/runs.jsonl"
    try:
        os.makedirs(state, mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, line.encode(errors="surrogateescape"))
        finally:
            os.close(fd)
    except OSError as error:
        raise HostError(f"cannot write the run log {path}: {error.strerror}") from None


def read(state: str) -> Iterator[dict[str, Any]]:
    """Every event, oldest first. A line that is not JSON is passed on as {"event": "unreadable"}."""
    try:
        with open(f"{state}/runs.jsonl", encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    data = json.loads(line)
                except ValueError:
                    data = None
                yield data if isinstance(data, dict) else {"event": "unreadable", "line": line}
    except FileNotFoundError:
        return
