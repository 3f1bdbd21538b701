"""The proxy of one run, as a program: `main RELAY LOG PARENT CONTROL UID` (descriptors and a user id).

    RELAY    a connected socket: the frames of the relay
    LOG      the record of decisions, opened for appending
    PARENT   a pipe from bawn: one line, the configuration; its end is the end of the run
    CONTROL  a listening Unix socket
    UID      who to be from the first line on, where bawn is root; 0: nobody else

It opens no file for writing, starts no program and knows no secret.
"""

import asyncio
import os
import signal
import socket
import sys

from bawn.egress.config import load
from bawn.egress.serve.control import LONGEST, Control
from bawn.egress.serve.log import Log
from bawn.egress.serve.resolver import Resolver
from bawn.egress.serve.server import Server
from bawn.plan.way_config import Config


def main(words: list[str]) -> int:
    """0 at the end of the run; 1 when the relay ended first."""
    relay, log, parent, control, uid = map(int, words)
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    with os.fdopen(parent, "rb", buffering=0) as pipe:
        config = load(_line(pipe.fileno()))
        return asyncio.run(_serve(config, socket.socket(fileno=relay), log, parent, control))


def _line(fd: int) -> bytes:
    """The first line, however it comes; it may lack its end where bawn died: then it is no configuration."""
    line = b""
    while not line.endswith(b"\n") and (data := os.read(fd, 1 << 16)):
        line += data
    return line


async def _serve(config: Config, relay: socket.socket, log: int, parent: int, control: int) -> int:
    server = Server(config, relay, Log(log), Resolver())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, server.over.set)
    loop.add_reader(parent, server.over.set)
    door = await asyncio.start_unix_server(
        Control(server).serve, sock=socket.socket(fileno=control), limit=LONGEST
    )
    await server.over.wait()
    door.close()
    server.drain()
    return 0


if __name__ == "__main__":
    # Not sys.exit: threads that wait for DNS would be waited for.
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)
