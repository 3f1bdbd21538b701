"""Asks the proxies of running boxes, over their control sockets (`egress/serve/control.py`)."""

import json
import os

from bawn.effects.names import run_paths
from bawn.errors import HostError
from bawn.typed import Any

PATIENCE = 10.0  # seconds
_LONGEST = 1 << 20  # bytes of an answer


def runs(runtime: str) -> tuple[str, ...]:
    """The ids of the runs that have a way out, oldest first."""
    try:
        found = sorted(os.listdir(f"{runtime}/runs"))
    except FileNotFoundError:
        return ()
    return tuple(run for run in found if os.path.exists(f"{run_paths(runtime, run).way}/control"))


def ask(runtime: str, run: str, line: bytes) -> dict[str, Any]:
    """One line to the proxy of a run, and its answer. Raises HostError."""
    import socket

    way = run_paths(runtime, run).way
    try:
        directory = os.open(way, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.settimeout(PATIENCE)
                client.connect(f"/proc/self/fd/{directory}/control")  # a short path (unix(7))
                client.sendall(line.rstrip(b"\n") + b"\n")
                data = b""
                while not data.endswith(b"\n") and len(data) < _LONGEST and (more := client.recv(1 << 16)):
                    data += more
        finally:
            os.close(directory)
        answer = json.loads(data)
    except (OSError, ValueError) as error:
        raise HostError(f"the proxy of run {run} does not answer: {error}", "bawn runs") from None
    return dict(answer)
