"""The content of a file, searched for secrets by detect-secrets (an extra: `pip install detect-secrets`).

Only whether there was a hit is said, and of which kind: never where, and never the hit itself.
"""

import os
from importlib import import_module

from bawn.outbound.model import Verdict

LIMIT = 8 << 20  # bytes; a larger file is not searched in part, but denied


def scanned(verdict: Verdict, fd: int) -> Verdict:
    """The verdict on an allowed file, denied where its text looks like a secret or was not searched."""
    try:
        scan = import_module("detect_secrets.core.scan")
        settings = import_module("detect_secrets.settings")
    except ImportError:
        return _denied(verdict, "BWN941", "detect-secrets is not installed")
    data = b""
    while len(data) <= LIMIT:
        chunk = os.pread(fd, LIMIT + 1 - len(data), len(data))
        if not chunk:
            break
        data += chunk
    if len(data) > LIMIT:
        return _denied(verdict, "BWN941", f"it is larger than {LIMIT} bytes")
    with settings.default_settings():
        for line in data.decode(errors="replace").splitlines():
            for hit in scan.scan_line(line):
                return _denied(verdict, "BWN940", f"a line looks like: {hit.type}")
    return verdict


def _denied(verdict: Verdict, rule: str, why: str) -> Verdict:
    return verdict._replace(allowed=False, rule=rule, reason=f"{verdict.asked}: {why}")
