"""The way out, whole, before any box: relay and proxy as bawn starts them, in the lab's world.

A client here is the test itself, on the socket that a box would be given (a Unix socket is of no network
namespace). The lab sees what reached whom. Corpus E and N, their proxy half.
"""

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bawn.plan.model import EgressPlan
from bawn.plan.way_config import Config, write_config
from bawn.proof.lab import Lab
from tests.system.conftest import need
from tests.unit.test_egress_hello import real

pytestmark = pytest.mark.system

CONTROL_PLANE = (("203.0.113.0/24", "the control plane"), ("2001:db8:66::/48", "the control plane"))
LISTED = (
    "api.provider.test:443",
    "api.provider.test:80",
    "api.provider.test:8080",
    "*.wild.provider.test:443",
)
SPECIAL = ("private.test", "metadata.test", "loopback.test", "mapped.test", "nat64.test", "mixed.test")
# Holds a way open until its stdin ends. In the host namespace, with the lab's resolver as its own.
HOLD = """
import json, os, sys
sys.path.insert(0, {source!r})
from bawn.effects.names import run_paths
from bawn.effects.way import Way
from bawn.plan.model import EgressPlan
from types import SimpleNamespace
plan = SimpleNamespace(profile="build", egress=EgressPlan("proxy", *json.loads(sys.argv[2])))
os.makedirs(sys.argv[1] + "/runs/r1")
with Way(plan, sys.argv[1], run_paths(sys.argv[1], "r1"), "r1") as way:
    print(json.dumps(way._children), flush=True)
    sys.stdin.read()
print(*way.notes)
"""
SOURCE = str(Path(__file__).parents[2] / "src")


class Held:
    """A way that is open, and what it wrote down."""

    def __init__(self, lab: Lab, directory: Path, allow: tuple[str, ...]) -> None:
        self.lab, self.directory = lab, directory
        (directory / "resolv.conf").write_text("nameserver 93.184.216.53\noptions timeout:1 attempts:1\n")
        egress = [[line, line] for line in allow], CONTROL_PLANE
        script = 'mount --bind "$1" /etc/resolv.conf; shift; exec "$@"'
        argv = lab.inside(
            "unshare", "--mount", "--propagation", "slave", "sh", "-ec", script, "sh",
            str(directory / "resolv.conf"), sys.executable, "-c", HOLD.format(source=SOURCE),
            str(directory), json.dumps(egress),
        )  # fmt: skip
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.children: dict[str, int] = json.loads(self.process.stdout.readline())
        self.way = directory / "runs" / "r1" / "way"

    def connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(20)
        client.connect(str(self.way / "door" / "proxy.sock"))
        return client

    def ask(self, request: bytes) -> bytes:
        with self.connect() as client:
            client.sendall(request)
            return b"".join(iter(lambda: client.recv(1 << 16), b""))

    def tunnel(self, target: str) -> tuple[int, socket.socket]:
        """The status of a CONNECT, and the socket behind its head."""
        client = self.connect()
        client.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head and (data := client.recv(1)):
            head += data
        return int(head.split()[1]), client

    def get(self, name: str) -> str:
        """By TLS, checked against the lab's CA; the name of the host that answered."""
        status, client = self.tunnel(f"{name}:443")
        assert status == 200
        context = ssl.create_default_context(cafile=self.lab.ca)
        with context.wrap_socket(client, server_hostname=name) as tls:
            tls.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
            return b"".join(iter(lambda: tls.recv(999), b"")).split()[-1].decode()

    def control(self, line: bytes) -> dict[str, object]:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(10)
            client.connect(str(self.way / "control"))
            client.sendall(line + b"\n")
            answer: dict[str, object] = json.loads(b"".join(iter(lambda: client.recv(1 << 16), b"")))
            return answer

    def log(self) -> list[dict[str, object]]:
        path = self.directory / "egress.log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def logged(self, count: int) -> list[dict[str, object]]:
        deadline = time.monotonic() + 5
        while len(self.log()) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.log()

    def questions(self) -> list[str]:
        return [contact.name for contact in self.lab.contacts() if contact.proto.startswith("dns")]

    def close(self) -> str:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        said = self.process.stdout.read()
        assert self.process.wait(10) == 0, said
        return said.strip()


def closed(client: socket.socket) -> bool:
    """A Unix socket knows a reset only where something was left unread."""
    with contextlib.suppress(ConnectionResetError):
        return client.recv(1) == b""
    return True


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[object]:
    need("ip", "nft", "nsenter", "unshare", "openssl")
    held: list[Held] = []
    with Lab() as lab:

        def start(*allow: str) -> Held:
            directory = tmp_path / str(len(held))
            directory.mkdir()
            held.append(Held(lab, directory, allow or LISTED))
            return held[-1]

        yield start
        for one in held:
            if one.process.poll() is None:
                one.close()
            for child in one.children.values():
                assert not os.path.exists(f"/proc/{child}"), "left behind"


def test_a_listed_host_answers_and_no_other(hold) -> None:  # type: ignore[no-untyped-def]
    """E01, E05, E18, E24: the control first; then nothing is dialled, and nothing asked for."""
    way = hold()
    assert way.get("api.provider.test") == "provider"
    assert way.get("a.wild.provider.test") == "provider"
    plain = way.ask(b"GET http://api.provider.test/ HTTP/1.1\r\nHost: api.provider.test\r\n\r\n")
    assert plain.endswith(b"provider\n")
    before = len(way.lab.contacts())
    for target in (
        "stranger.test:443", "c2VjcmV0.stranger.test:443", "93.184.216.66:443", "1572395074:443",
        "169.254.169.254:80", "[fd00:ec2::254]:80", "api.provider.test:22", "api.provider.test:5432",
        "xapi.provider.test:443", "wild.provider.test:443", "203.0.113.66:443",
    ):  # fmt: skip
        status, client = way.tunnel(target)
        assert status in (400, 403), target
        client.close()
    for host in ("stranger.test", "93.184.216.66", "169.254.169.254"):
        assert b" 403 " in way.ask(f"GET http://{host}/?d=secret HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert way.lab.contacts()[before:] == ()
    assert set(way.questions()) == {"api.provider.test", "a.wild.provider.test"}
    packets = way.lab.packets()
    assert {name for name, count in packets.items() if count} == {"provider", "resolver"}


def test_names_that_lead_astray(hold) -> None:  # type: ignore[no-untyped-def]
    """E08, E11: listed, and still nothing goes there."""
    way = hold(*(f"{name}:{port}" for name in SPECIAL for port in (80, 443)), "rebind.test:80", "empty.test")
    for name in SPECIAL:
        for port in (80, 443):
            assert way.tunnel(f"{name}:{port}")[0] == 403, name
    assert way.tunnel("empty.test:443")[0] == 502
    assert way.tunnel("missing.test:443")[0] == 403
    first = way.ask(b"GET http://rebind.test/ HTTP/1.1\r\nHost: rebind.test\r\n\r\n")
    assert first.endswith(b"provider\n")
    assert way.questions().count("rebind.test") == 2  # A and AAAA, once
    assert {name for name, count in way.lab.packets().items() if count} == {"provider", "resolver"}
    denied = [entry for entry in way.log() if entry["verdict"] == "denied"]
    assert {entry["rule"] for entry in denied} == {
        "BWN801",
        "BWN820",
        "BWN821",
    }  # loopback is this host's own
    assert len(denied) == 2 * len(SPECIAL) + 1


def test_own_addresses_and_the_control_plane(hold, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """A name of hosts(5) that leads to this host, or to the control plane."""
    way = hold("self.test:80", "plane.test:80", "lo.test:80")
    hosts = tmp_path / "hosts"
    hosts.write_text("198.51.100.2 self.test\n203.0.113.66 plane.test\n127.0.0.1 lo.test\n")
    enter = ("nsenter", f"--mount=/proc/{way.children['proxy']}/ns/mnt")
    subprocess.run([*enter, "mount", "--bind", str(hosts), "/etc/hosts"], check=True)
    for name in ("self.test", "plane.test", "lo.test"):
        assert way.tunnel(f"{name}:80")[0] == 403
    assert [entry["rule"] for entry in way.log()][1] == "BWN821"
    assert way.questions() == []
    assert sum(way.lab.packets().values()) == 0


def test_another_sni(hold) -> None:  # type: ignore[no-untyped-def]
    """E14: the server behind the tunnel never sees a byte of it."""
    way = hold()
    for hello in (real("stranger.test"), real(None), b"SSH-2.0-x\r\n", os.urandom(600)):
        status, client = way.tunnel("api.provider.test:443")
        assert status == 200
        client.sendall(hello)
        assert closed(client)
        client.close()
    rules = [entry["rule"] for entry in way.logged(4)]
    assert rules[:3] == ["BWN830", "BWN831", "BWN833"]
    assert {contact.port for contact in way.lab.contacts() if contact.proto == "tcp"} <= {443}
    assert "stranger.test" in str(way.log()[0]["reason"]) and way.log()[0]["name"] == "api.provider.test"
    assert all(entry["sent"] == 0 for entry in way.log())


def test_one_line_for_each_decision(hold) -> None:  # type: ignore[no-untyped-def]
    way = hold()
    way.get("api.provider.test")
    way.tunnel("stranger.test:443")[1].close()
    way.ask(b"RESOLVE api.provider.test HTTP/1.1\r\nHost: x\r\nBawn-Way: resolve\r\n\r\n")
    way.ask(b"RESOLVE stranger.test HTTP/1.1\r\nHost: x\r\nBawn-Way: resolve\r\n\r\n")
    entries = {(str(e["verdict"]), str(e["way"])): e for e in way.logged(3)}
    assert set(entries) == {("allowed", "connect"), ("denied", "connect"), ("denied", "resolve")}
    allowed = entries["allowed", "connect"]
    assert allowed["address"] in ("93.184.216.77", "2606:2800:220:66::77") and allowed["port"] == 443
    assert allowed["by"] == "api.provider.test:443" and allowed["how"] == "closed"
    assert isinstance(allowed["sent"], int) and allowed["sent"] > 300
    assert isinstance(allowed["received"], int) and allowed["received"] > 500
    assert {e["run"] for e in way.log()} == {"r1"} and {e["profile"] for e in way.log()} == {"build"}
    assert (way.directory / "egress.log").stat().st_mode & 0o777 == 0o600


def test_reload(hold) -> None:  # type: ignore[no-untyped-def]
    """E20: another policy holds at once, for what is open too; a broken one changes nothing."""
    way = hold()
    status, kept = way.tunnel("api.provider.test:8080")
    _, ended = way.tunnel("a.wild.provider.test:443")
    assert status == 200
    for broken in (b"", b"{}", b"[]", b'["r1","build",["proxy",[["*",""]],[]]]', b'["r1","b",["none",[],[]]]',
                   b'["r1","build",["proxy",[],[["10.0.0.0/99","x"]]]]'):  # fmt: skip
        assert "error" in way.control(b"reload " + broken)
    assert way.get("api.provider.test") == "provider"
    pairs = tuple((line, line) for line in ("api.provider.test:8080", "stranger.test:443"))
    config = write_config(Config("r1", "build", EgressPlan("proxy", pairs, ())))
    assert way.control(b"reload " + config.strip()) == {"ended": 1}
    assert closed(ended)
    kept.sendall(b"GET / HTTP/1.1\r\nHost: api.provider.test:8080\r\n\r\n")
    assert b"provider" in b"".join(iter(lambda: kept.recv(999), b""))
    assert way.tunnel("api.provider.test:443")[0] == 403
    assert way.get("stranger.test") == "stranger"
    status_now = way.control(b"status")
    assert status_now["lines"] == 2 and status_now["denied"] == 2
    nothing = write_config(Config("r1", "build", EgressPlan("proxy", (), ())))
    way.control(b"reload " + nothing.strip())
    assert way.tunnel("stranger.test:443")[0] == 403


@pytest.mark.parametrize("who", ["proxy", "relay"])
def test_either_killed(hold, who: str) -> None:  # type: ignore[no-untyped-def]
    """Nothing opens: what was open is reset, nobody listens any more, and the run says so."""
    way = hold()
    status, client = way.tunnel("api.provider.test:8080")
    assert status == 200
    os.kill(way.children[who], signal.SIGKILL)
    assert closed(client)
    client.close()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            way.connect().close()
        except ConnectionRefusedError:
            break
        time.sleep(0.01)
    else:
        raise AssertionError("somebody still listens")
    assert "closed before the run ended" in way.close()


def test_bawn_killed(hold) -> None:  # type: ignore[no-untyped-def]
    way = hold()
    _, client = way.tunnel("api.provider.test:8080")
    way.process.kill()
    way.process.wait()
    deadline = time.monotonic() + 5
    while any(os.path.exists(f"/proc/{child}") for child in way.children.values()):
        assert time.monotonic() < deadline, "it outlives bawn"
        time.sleep(0.01)
    assert [entry["how"] for entry in way.log()] == ["drained"]
    client.close()


def test_who_they_are(hold) -> None:  # type: ignore[no-untyped-def]
    """Nobody of this machine, without a capability, in no terminal's group, holding no file of the host."""
    way = hold()
    assert way.get("api.provider.test") == "provider"
    for child in way.children.values():
        status = Path(f"/proc/{child}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert fields["Uid"].split() == ["2147483001"] * 4 and fields["Groups"].split() == []
        assert int(fields["CapEff"], 16) == 0 and os.getpgid(child) == child
        assert Path(f"/proc/{child}/environ").read_bytes().startswith(b"PATH=")
    assert way.way.stat().st_mode & 0o777 == 0o700
    assert (way.way / "door").stat().st_mode & 0o777 == 0o711


def test_memory(hold) -> None:  # type: ignore[no-untyped-def]
    """1,000 idle tunnels: both processes together below 30 MiB (docs/performance.md has the figure)."""
    way = hold("api.provider.test:8080")
    open_here = []
    for _ in range(1000):
        status, client = way.tunnel("api.provider.test:8080")
        assert status == 200
        open_here.append(client)
    assert way.control(b"status")["open"] == 1000
    kib = 0
    for child in way.children.values():
        rows = Path(f"/proc/{child}/status").read_text().splitlines()
        kib += next(int(row.split()[1]) for row in rows if row.startswith("VmRSS"))
    for client in open_here:
        client.close()
    assert kib < 30 << 10, kib
