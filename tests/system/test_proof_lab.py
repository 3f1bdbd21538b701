"""The lab: everybody in it is reachable (the control for every later "is not"), fast up, and gone after.

No packet leaves the namespaces that the lab makes.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bawn.proof import world
from bawn.proof.lab import Lab, sweep
from tests.system.conftest import need

pytestmark = pytest.mark.system

# Asks every host on every port, from inside; a line of JSON with what answered.
ASK = """
import json, socket, ssl, sys
ports, udp, hosts, ca = json.load(sys.stdin)
found = {}
for address in hosts:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for port in ports:
        with socket.socket(family) as s:
            s.settimeout(2)
            s.connect((address, port))
            if port == 443:
                context = ssl.create_default_context(cafile=ca)
                s = context.wrap_socket(s, server_hostname="api.provider.test")
            s.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
            found[f"{address} tcp {port}"] = b"".join(iter(lambda: s.recv(999), b"")).split()[-1].decode()
    for port in udp:
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.settimeout(2)
            s.sendto(b"hello", (address, port))
            found[f"{address} udp {port}"] = s.recv(99).decode()
print(json.dumps(found))
"""
# A question by hand: no resolver library is at hand everywhere, and this shows the very bytes.
DIG = """
import socket, struct, sys
name, kind, tcp = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "tcp"
labels = b"".join(bytes([len(l)]) + l.encode() for l in name.split("."))
query = struct.pack("!6H", 7, 256, 1, 0, 0, 0) + labels + b"\\0" + struct.pack("!HH", kind, 1)
with socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as s:
    s.settimeout(2)
    s.connect(("93.184.216.53", 53))
    s.sendall((struct.pack("!H", len(query)) if tcp else b"") + query)
    reply = s.recv(999)[2 if tcp else 0:]
_, flags, _, answers, _, _ = struct.unpack_from("!6H", reply)
size = 4 if kind == 1 else 16
family = socket.AF_INET if kind == 1 else socket.AF_INET6
at = len(query)
found = [reply[at + 12 + i * (12 + size):][:size] for i in range(answers)]
print(flags & 15, *(socket.inet_ntop(family, data) for data in found))
"""


# A lab that its process does not end.
KEEP = """
import time
from bawn.proof.lab import Lab
with Lab() as lab:
    print(lab.id, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def lab() -> Iterator[Lab]:
    need("ip", "nft", "nsenter", "openssl")
    with Lab() as made:
        yield made


def python(lab: Lab, script: str, *words: str, given: str = "") -> str:
    argv = lab.inside("/usr/bin/python3", "-c", script, *words)
    done = subprocess.run(argv, input=given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everybody_answers_and_is_counted(lab: Lab) -> None:
    addresses = [a for host in world.HOSTS for a in host.addresses]
    given = json.dumps([world.TCP_PORTS, world.UDP_PORTS, addresses, lab.ca])
    found = json.loads(python(lab, ASK, given=given))
    for host in world.HOSTS:
        for address in host.addresses:
            for port in world.TCP_PORTS:
                assert found[f"{address} tcp {port}"] == host.name
            for port in world.UDP_PORTS:
                assert found[f"{address} udp {port}"] == "hello"
    seen = {(c.address, c.proto, c.port) for c in lab.contacts()}
    assert len(seen) == len(found)
    assert all(lab.packets()[host.name] > 0 for host in world.HOSTS)


def test_nobody_is_counted_who_was_not_asked(lab: Lab) -> None:
    """Any protocol counts, also one that no server hears."""
    assert set(lab.packets().values()) == {0}
    sctp = "import socket; socket.socket(2, socket.SOCK_RAW, 132).sendto(b'x' * 16, ('10.66.0.10', 0))"
    python(lab, sctp)
    packets = lab.packets()
    assert packets.pop("private-10") == 1
    assert set(packets.values()) == {0}
    assert lab.contacts() == ()


def test_it_has_no_other_way_out(lab: Lab) -> None:
    """An address of nobody's: the world does not pass it on."""
    script = "import socket; s = socket.socket(); s.settimeout(0.5); print(s.connect_ex(('9.9.9.9', 80)))"
    assert int(python(lab, script)) != 0
    links = subprocess.run(
        ["ip", "-n", lab.world, "-o", "link"], capture_output=True, text=True, check=True
    ).stdout
    assert [line.split()[1] for line in links.splitlines()] == ["lo:", "in@if2:"]


@pytest.mark.parametrize("proto", ["udp", "tcp"])
def test_names(lab: Lab, proto: str) -> None:
    def ask(name: str, kind: int = 1) -> list[str]:
        return python(lab, DIG, name, str(kind), proto).split()

    assert ask("api.provider.test") == ["0", "93.184.216.77"]
    assert ask("API.Provider.TEST", 28) == ["0", "2606:2800:220:66::77"]
    assert ask("a.wild.provider.test") == ["0", "93.184.216.77"]
    assert ask("mapped.test", 28) == ["0", "::ffff:10.66.0.10"]
    assert ask("empty.test") == ["0"]
    assert ask("nobody.test") == ["3"]
    assert [ask("rebind.test")[1] for _ in range(3)] == ["93.184.216.77", *["169.254.169.254"] * 2]
    asked = [(c.name, c.type) for c in lab.contacts()]
    assert asked[0] == ("api.provider.test", "A")
    assert asked.count(("nobody.test", "A")) == 1


@pytest.mark.parametrize("junk", ["", "00", "ff" * 12, "00" * 12, "0007010000010000000000003f61", "ff" * 500])
def test_a_malformed_question_ends_nothing(lab: Lab, junk: str) -> None:
    send = "import socket, sys; socket.socket(2, 2).sendto(bytes.fromhex(sys.argv[1]), ('93.184.216.53', 53))"
    python(lab, send, junk)
    assert python(lab, DIG, "api.provider.test", "1", "udp").split()[0] == "0"


def traces(pid: int) -> set[str]:
    """Namespaces and files of the labs of one process."""
    return {str(p) for at in ("/run/netns", "/var/tmp") for p in Path(at).glob(f"bawn-proof-{pid}-*")}


def test_fast_several_and_gone() -> None:
    need("ip", "nft", "nsenter", "openssl")
    before, times = traces(os.getpid()), []
    with Lab() as one:
        started = time.monotonic()
        with Lab() as two:
            times.append(time.monotonic() - started)
            script = "import socket; socket.create_connection(('10.66.0.10', 80), 2)"
            python(two, script)
            assert two.packets()["private-10"] > 0
            assert one.packets()["private-10"] == 0
    assert traces(os.getpid()) == before
    assert min(times) < 4  # under 2 s on a quiet machine (docs/performance.md)


def test_what_a_killed_lab_left_is_removed_by_the_next() -> None:
    need("ip", "nft", "nsenter", "openssl")
    child = subprocess.Popen([sys.executable, "-c", KEEP], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    name = child.stdout.readline().strip()
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert traces(child.pid)
    sweep()
    assert not traces(child.pid)
    deadline = time.monotonic() + 5
    while servers := [p for p in Path("/proc").glob("[0-9]*/cmdline") if name in text(p)]:
        assert time.monotonic() < deadline, servers
        time.sleep(0.05)


def text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
