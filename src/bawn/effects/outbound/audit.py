"""The audit: one JSON line a verdict in `outbound.log`, in bawn's state directory. Never any content.

What is not written down does not leave: a log that cannot be written denies everything.
"""

import json
import os
from collections.abc import Iterable

from bawn.errors import HostError
from bawn.evidence.runlog import utc_now
from bawn.outbound.model import Verdict

NAME = "outbound.log"
LIMIT = 64 << 20  # bytes; then it becomes outbound.log.1, and the one before that is gone
_SHOWN = 1024  # characters of one path


def record(state: str, call: str, verdicts: Iterable[Verdict]) -> None:
    """Appends the verdicts of one `call` ("check", "stage", "open") in one write. Raises HostError."""
    now = utc_now()
    lines = [
        json.dumps(
            {"time": now, "call": call, "allowed": one.allowed, "rule": one.rule, "asked": one.asked[:_SHOWN],
             "path": one.path[:_SHOWN], "size": one.size, "form": one.form, "where": one.where[:_SHOWN]},
            separators=(",", ":"),
        )
        for one in verdicts
    ]  # fmt: skip
    if not lines:
        return
    path = f"{state}/{NAME}"
    try:
        os.makedirs(state, mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(path, flags, 0o600)
        try:
            if os.fstat(fd).st_size > LIMIT:
                os.rename(path, f"{path}.1")
                os.close(fd)
                fd = os.open(path, flags, 0o600)
            data = memoryview(("\n".join(lines) + "\n").encode())
            while data:
                data = data[os.write(fd, data) :]
        finally:
            os.close(fd)
    except OSError as error:
        raise HostError(f"cannot write the audit log {path}: {error.strerror}; nothing leaves") from None
