"""The way by itself, with the sanitizers, under clients that break off wherever they are.

Compiled for the host's kernel and run in a network namespace that has nothing but loopback (this file
is also the program that runs in there).
"""

import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
sys.path[:0] = [str(TOP), str(TOP / "src")]

from tests.system.conftest import need  # noqa: E402
from tests.system.way_world import Proxy  # noqa: E402

pytestmark = pytest.mark.system

MAIN = """
#include "way.h"
#include <unistd.h>
int main(int argc, char **argv)
{
	if (argc != 2 || way_open(argv[1]) || way_start())
		return 1;
	for (;;)
		pause();
}
"""
SECONDS = 3
PORTS = (443, 8443, 9000, 25, 7, 13, 14)


def test_clients_that_break_off(tmp_path: Path) -> None:
    need("cc", "unshare", "ip")
    box, program = TOP / "src/bawn/box", tmp_path / "way"
    (tmp_path / "main.c").write_text(MAIN)
    sources = [tmp_path / "main.c", *(box / f"{name}.c" for name in ("way", "join", "resolve", "wire"))]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    words: list[str | Path] = [
        "cc",
        "-std=gnu11",
        "-g",
        "-O1",
        *sanitizers,
        f"-I{box}",
        "-o",
        program,
        *sources,
        "-lpthread",
    ]
    subprocess.run(words, check=True)
    script = 'ip link set lo up && exec "$0" "$@"'
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", script, sys.executable, __file__, program, tmp_path / "p"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def question(name: str, type: int = 1) -> bytes:
    wire = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack("!6H", 7, 256, 1, 0, 0, 0) + wire + b"\0" + struct.pack("!HH", type, 1)


def resolve(name: str) -> bytes:
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        s.settimeout(10)
        s.sendto(question(name), ("127.0.0.1", 53))
        return s.recv(600)


def misbehave(r: random.Random, address: str) -> None:
    """One client. Raises OSError as it comes."""
    kind = r.randrange(7)
    if kind == 0:
        packet = bytearray(question(r.choice(["web.test", "x.test", "api.test"]), r.choice([1, 28, 65])))
        for _ in range(r.randrange(3)):
            packet[r.randrange(len(packet))] = r.randrange(256)
        with socket.socket(type=socket.SOCK_DGRAM) as s:
            s.sendto(packet, ("127.0.0.1", 53))
        return
    port = r.choice(PORTS)
    where = ("127.0.0.1", 53) if kind == 1 else ("127.0.0.1", 3128) if kind > 4 else (address, port)
    with socket.create_connection(where, 5) as s:
        s.settimeout(r.choice([0.01, 0.1, 0.3]))
        if kind == 1:
            packets = [question("web.test"), question("y.test")] * r.randrange(1, 5)
            data = b"".join(struct.pack("!H", len(p)) + p for p in packets)
            s.sendall(data[: r.randrange(len(data) + 1)])
            if r.random() < 0.5:
                s.recv(100)
            return
        if kind > 4:
            heads = ["GET http://web.test/ HTTP/1.1\r\n\r\n", f"CONNECT api.test:{port} HTTP/1.1\r\n\r\n"]
            s.sendall(r.choice(heads).encode())
        s.sendall(bytes(r.choice([1, 1000, 300_000])))
        if r.random() < 0.5:
            s.shutdown(socket.SHUT_WR)
        for _ in range(r.randrange(30)):
            s.recv(65536)
        if r.random() < 0.3:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def inside(program: str, directory: str) -> None:
    """In the namespace: chaos, and then the way must be there, with nothing kept."""
    with Proxy(Path(directory), os.getuid(), os.getgid()) as proxy:
        way = subprocess.Popen([program, f"{directory}/proxy.sock"], stderr=subprocess.STDOUT)
        time.sleep(0.5)
        try:
            address = socket.inet_ntoa(resolve("api.test")[-4:])
            assert address == "127.64.0.1"
            end = time.monotonic() + SECONDS
            before = len(os.listdir(f"/proc/{way.pid}/fd"))

            def work(seed: int) -> None:
                r = random.Random(seed)
                while time.monotonic() < end:
                    try:
                        misbehave(r, address)
                    except OSError:
                        continue

            workers = [threading.Thread(target=work, args=(seed,)) for seed in range(30)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            assert way.poll() is None
            left = 0
            for _ in range(50):
                left = len(os.listdir(f"/proc/{way.pid}/fd"))
                if left <= before + 2:  # web.test has two ports
                    break
                time.sleep(0.1)
            assert left <= before + 2, f"{left} descriptors, {before} before"
            assert resolve("api.test")[-4:] == b"\x7f\x40\0\1"
            proxy.die()
            assert resolve("api.test")[3] & 15 == 2
            assert way.poll() is None
        finally:
            way.kill()
            way.wait()
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    inside(*sys.argv[1:])
