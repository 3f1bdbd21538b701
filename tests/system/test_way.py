"""The one way out, from inside a box: loopback led to the proxy's socket, and nothing else.

Engine gvisor for each way of invoking bawn; docker below. The proxy is a fake one (way_world.py),
which keeps a list of what it was asked.
"""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import bawn
from tests.system import way_world
from tests.system.conftest import BAWN, Person, need, owner_of, policy
from tests.system.lab import IMAGE, Lab, runsc_of
from tests.system.way_world import LISTED, Proxy, echo

pytestmark = pytest.mark.system

START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from way_world import main; sys.exit(main(*sys.argv[2:]))"
)
# What every script begins with: a name resolved and dialled as a program without a proxy does.
PRELUDE = """
import hashlib, json, os, socket, struct, sys, threading, time
def dial(name, port, seconds=20):
    return socket.create_connection((name, port), seconds)
def tried(action):
    try:
        return action()
    except OSError as error:
        return type(error).__name__ if type(error) is not OSError else f"errno {error.errno}"
def rest(s):
    return b"".join(iter(lambda: s.recv(65536), b""))
"""


class Box:
    """Somebody's boxes with that proxy as their way out."""

    def __init__(self, tree: Path, person: Person, work: Path, proxy: Proxy, engine: str = "gvisor") -> None:
        self.tree, self.person, self.work, self.proxy = tree, person, work, proxy
        self.engine, self.image = engine, "host" if engine == "gvisor" else IMAGE
        self.more: dict[str, str] = {}

    def start(self, *command: str) -> "subprocess.Popen[str]":
        where = [str(self.tree), str(self.proxy.directory), self.engine, self.image]
        return subprocess.Popen(
            ["/usr/bin/python3", "-IS", "-c", START, *where, *command],
            cwd=self.work, env=self.person.environment(**self.more), text=True,
            user=self.person.uid, group=self.person.gid, extra_groups=[], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *command: str) -> str:
        """What the command wrote; it must succeed and be silent otherwise."""
        child = self.start(*command)
        try:
            out, err = child.communicate(timeout=60)
        finally:
            child.kill()
        assert (child.returncode, err) == (0, ""), out
        return out

    def python(self, script: str) -> dict[str, object]:
        """The JSON object that the script prints last."""
        return dict(json.loads(self.run("python3", "-c", PRELUDE + script)))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """bawn and the fake proxy where every user can read them."""
    need("runsc", "curl", "node", "getent")
    path = Path("/var/tmp") / f"bawn-way-{os.getpid()}"
    shutil.copytree(Path(bawn.__file__).parent, path / "bawn", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(way_world.__file__, path)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def box(tree: Path, person: Person, work: Path) -> Iterator[Box]:
    with Proxy(Path(f"{tree}-{os.urandom(3).hex()}"), *owner_of(work)) as proxy:
        yield Box(tree, person, work, proxy)


each = pytest.mark.parametrize("person", ["owner", "rootless"], indirect=True)
rootless = pytest.mark.parametrize("person", ["rootless"], indirect=True)

FETCH = 'fetch("http://web.test/").then(r => r.text()).then(t => process.stdout.write(t))'
CLIENTS = f"""
curl -sS http://web.test/
curl -sS --noproxy '*' http://web.test/
curl -sS -o /dev/null -w '%{{http_code}}\\n' http://other.test/
curl -sS --noproxy '*' http://other.test/ 2>/dev/null; echo "curl $?"
getent ahosts web.test | head -n 1; getent hosts other.test; echo "getent $?"
getent ahosts localhost | head -n 1
node -e '{FETCH}'
env -u NODE_USE_ENV_PROXY node -e '{FETCH}'
cat /etc/resolv.conf
grep -h Cap /proc/self/status /proc/1/status | sort -u | cut -f2 | sort -u
find / \\( -path /usr -o -path /proc \\) -prune -o -type s -print 2>/dev/null
node --version
"""


def test_which_client_goes_which_way(box: Box) -> None:
    """E21, E23: with the proxy's variables, and without; an unlisted name costs one question."""
    *lines, version = box.run("sh", "-c", CLIENTS).splitlines()
    node = "hello web.test by proxy" if reads_variables(version) else "hello web.test"
    address = r"127\.64\.0\.1 +STREAM web\.test"
    assert re.fullmatch(address, lines[4]), lines
    assert lines[:4] + lines[5:6] == [
        "hello web.test by proxy", "hello web.test", "403", "curl 6", "getent 2",
    ]  # fmt: skip
    assert lines[6].split()[0] in ("127.0.0.1", "::1")
    assert lines[7:] == [
        node, "hello web.test", "nameserver 127.0.0.1", "options ndots:0 timeout:5 attempts:2",
        "0000000000000000", "/run/bawn/way/proxy.sock",
    ]  # fmt: skip
    asked = set(box.proxy.asked) - {"GET http://web.test/ HTTP/1.1", "CONNECT web.test:80 HTTP/1.1"}
    assert asked == {
        "GET http://other.test/ HTTP/1.1",
        "RESOLVE web.test HTTP/1.1  Bawn-Way: resolve",
        "CONNECT web.test:80 HTTP/1.1  Bawn-Way: transparent",
        "RESOLVE other.test HTTP/1.1  Bawn-Way: resolve",
    }


def reads_variables(version: str) -> bool:
    """Does this Node's fetch read NODE_USE_ENV_PROXY?"""
    major, minor, _ = (int(part) for part in version.removeprefix("v").split("."))
    return (major, minor) >= (24, 5) or (major == 22 and minor >= 21)


@each
def test_streams(box: Box) -> None:
    """1 MiB both ways, half-close, a server that speaks first, and a port that is not listed."""
    seen = box.python("""
blob = os.urandom(1 << 20)
def both(name, port, through=None):
    s = dial(*(through or (name, port)))
    if through:
        s.sendall(f"CONNECT {name}:{port} HTTP/1.1\\r\\nHost: {name}:{port}\\r\\n\\r\\n".encode())
        assert s.recv(4096).startswith(b"HTTP/1.1 200")
    def send():
        s.sendall(blob); s.shutdown(socket.SHUT_WR)
    sender = threading.Thread(target=send); sender.start()
    got = rest(s); sender.join(); return got
digest = f"{len(blob)} {hashlib.sha256(blob).hexdigest()}\\n".encode()
proxy = ("127.0.0.1", 3128)
print(json.dumps({
  "echo": both("api.test", 443) == blob, "digest": both("api.test", 8443) == digest,
  "echo by proxy": both("api.test", 443, proxy) == blob,
  "digest by proxy": both("api.test", 8443, proxy) == digest,
  "first": dial("api.test", 25).recv(100).decode(),
  "refused": [tried(lambda: dial("api.test", p).recv(9).decode()) for p in (13, 14)],
  "port": tried(lambda: dial("api.test", 80)), "no name": tried(lambda: dial("127.64.9.9", 443)),
  "outside": tried(lambda: dial("203.0.113.7", 443, 3)),
  "udp": tried(lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("203.0.113.7", 443))),
  "raw": tried(lambda: socket.socket(type=socket.SOCK_RAW, proto=1)),
  "six": tried(lambda: socket.create_connection(("2001:db8::7", 443), 3)),
}))""")
    assert seen == {
        "echo": True, "digest": True, "echo by proxy": True, "digest by proxy": True,
        "first": "220 ready\r\n", "refused": ["ConnectionResetError"] * 2,
        "port": "ConnectionRefusedError", "no name": "ConnectionRefusedError",
        "outside": "errno 113", "udp": "errno 113", "raw": "PermissionError", "six": "errno 113",
    }  # fmt: skip
    assert not [line for line in box.proxy.asked if "CONNECT api.test:80 " in line]


@each
def test_three_hundred_at_once(box: Box) -> None:
    seen = box.python("""
good, all_there = [], threading.Barrier(300)
def one(i):
    s = dial(f"n{i % 40}.many.test", 443)
    data = os.urandom(5000)
    s.sendall(data[:9]); first = s.recv(9); all_there.wait(20)
    s.sendall(data[9:]); s.shutdown(socket.SHUT_WR)
    good.append(first + rest(s) == data)
threads = [threading.Thread(target=one, args=(i,)) for i in range(300)]
[t.start() for t in threads]; [t.join() for t in threads]
print(json.dumps({"good": sum(good)}))""")
    assert seen == {"good": 300}
    assert box.proxy.most >= 300


@rootless
def test_what_comes_when_all_are_busy_waits(box: Box) -> None:
    """256 descriptors are 52 connections; the 100 all get their turn."""
    policy(box.work, "[profile.default]\nlimits = { open_files = 256 }\n", box.person)
    seen = box.python("""
def whole(s):
    with s:
        return rest(s)
held = [dial("127.0.0.1", 3128) for _ in range(100)]
time.sleep(0.5)
for s in held:
    s.sendall(b"GET http://web.test/ HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n")
print(json.dumps({"good": sum(b"hello web.test by proxy" in whole(s) for s in held)}))""")
    assert seen == {"good": 100}
    assert 40 < box.proxy.most <= 53


@rootless
def test_slow_readers_hold_nobody_up(box: Box) -> None:
    seen = box.python("""
slow = [dial("api.test", 9000) for _ in range(20)]
time.sleep(0.5)
start = time.monotonic()
s = dial("api.test", 443); s.sendall(b"x"); s.recv(1)
took = time.monotonic() - start
memory = int(next(l for l in open("/proc/1/status") if l.startswith("VmRSS")).split()[1])
print(json.dumps({"quick": took < 2, "memory": memory < 16384, "whole": len(rest(slow[3]))}))""")
    assert seen == {"quick": True, "memory": True, "whole": 64 << 20}


@each
def test_the_proxy_dies(box: Box) -> None:
    child = box.start("python3", "-uc", PRELUDE + """
held, address = [dial("api.test", 7), dial("127.0.0.1", 3128)], socket.gethostbyname("api.test")
print("ready"); sys.stdin.readline()
print(json.dumps({
  "held": [tried(lambda: s.recv(10).decode()) for s in held],
  "proxy": tried(lambda: dial("127.0.0.1", 3128).recv(10).decode()),
  "name": tried(lambda: dial("api.test", 443)),
  "address": tried(lambda: dial(address, 443).recv(10).decode()),
  "outside": tried(lambda: dial("203.0.113.7", 443, 3)),
}))""")  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    box.proxy.die()
    out, err = child.communicate("\n", timeout=30)
    assert (child.returncode, err) == (0, "")
    assert json.loads(out) == {
        "held": ["", ""], "proxy": "ConnectionResetError", "name": "gaierror",
        "address": "ConnectionResetError", "outside": "errno 113",
    }  # fmt: skip


@rootless
def test_the_box_keeps_its_own_servers(box: Box) -> None:
    """On loopback at any port, listed or not; on all addresses where it sets SO_REUSEADDR, as nearly every
    server does. A name whose port is taken otherwise leads nowhere, rather than to that server."""
    seen = box.python("""
def serve(s):
    s.listen(); threading.Thread(target=turn, args=(s,), daemon=True).start()
def turn(s):
    while True:
        with s.accept()[0] as c:
            c.recv(1000); c.sendall(b"own")
def bind(at, port, reuse=1):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
    s.bind((at, port)); serve(s)
def ask(name, port):
    with dial(name, port) as s:
        s.sendall(b"GET / HTTP/1.1\\r\\nHost: there\\r\\n\\r\\n"); return s.recv(100)[-12:].decode()
bind("0.0.0.0", 25, 0); bind("0.0.0.0", 80)
first = ask("web.test", 80)
bind("127.0.0.1", 443); bind("127.0.0.1", 8000); bind("0.0.0.0", 8001)
print(json.dumps({
  "own": [ask("127.0.0.1", p) for p in (25, 80, 443, 8000, 8001)], "listed": [first, ask("web.test", 443)],
  "curl": os.popen("curl -sS --http0.9 http://127.0.0.1:8000/ http://localhost:8001/").read(),
  "taken": tried(lambda: ask("api.test", 443)),
}))""")
    listed = "hello there\n"
    assert seen == {"own": ["own"] * 5, "listed": [listed] * 2, "curl": "ownown", "taken": "gaierror"}
    assert not [line for line in box.proxy.asked if "localhost" in line or "127.0.0.1" in line]


@rootless
def test_a_name_that_is_taken_off_the_list(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LISTED, "gone.test", {443: echo, 444: echo})
    child = box.start("python3", "-uc", PRELUDE + """
def look():
    return [tried(lambda: socket.gethostbyname("gone.test")),
            *(tried(lambda: bool(dial("127.64.0.1", p))) for p in (443, 444, 445))]
first = look(); print("ready"); sys.stdin.readline()
second = look(); print("ready"); sys.stdin.readline()
print(json.dumps([first, second, look()]))""")  # fmt: skip
    assert child.stdin is not None and child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    monkeypatch.setitem(LISTED, "gone.test", {444: echo, 445: echo})
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "ready\n"
    monkeypatch.delitem(LISTED, "gone.test")
    out, err = child.communicate("\n", timeout=30)
    assert err == ""
    no = "ConnectionRefusedError"
    assert json.loads(out) == [
        ["127.64.0.1", True, True, no], ["127.64.0.1", no, True, True], ["gaierror", no, no, no],
    ]  # fmt: skip


@rootless
def test_the_resolver(box: Box) -> None:
    """What stub resolvers ask, and what nobody should."""
    box.proxy.delay = 0.05
    seen = box.python("""
def question(name, type=1, flags=0x100, more=b"", counts=(1, 0, 0, 0), id=7):
    wire = b"".join(bytes([len(p)]) + p for p in name.encode("latin-1").split(b".") if p) + b"\\0"
    return struct.pack("!6H", id, flags, *counts) + wire + struct.pack("!HH", type, 1) + more
def udp(packet, seconds=5):
    s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(seconds)
    s.sendto(packet, ("127.0.0.1", 53))
    try:
        return s.recv(4096)
    except TimeoutError:
        return None
def told(packet):
    return None if packet is None else [packet[3] & 15, packet[7], list(packet[-4:]) if packet[7] else 0]
def tcp(*packets):
    s = dial("127.0.0.1", 53)
    s.sendall(b"".join(struct.pack("!H", len(p)) + p for p in packets)); s.shutdown(socket.SHUT_WR)
    data, found = rest(s), []
    while data:
        n = struct.unpack("!H", data[:2])[0]; found.append(told(data[2:2 + n])); data = data[2 + n:]
    return found
edns = b"\\0" + struct.pack("!HHIH", 41, 4096, 0, 0)
found = {
  "a": told(udp(question("web.test"))), "case": told(udp(question("WeB.TesT"))),
  "aaaa": told(udp(question("web.test", 28))), "https": told(udp(question("web.test", 65))),
  "unlisted": told(udp(question("other.test"))), "broken": told(udp(question("broken.test"))),
  "localhost": told(udp(question("localhost"))), "ptr": told(udp(question("1.0.64.127.in-addr.arpa", 12))),
  "line end": told(udp(question("a\\r\\nX: y.test"))),
  "edns": udp(question("web.test", 1, 0x100, edns, (1, 0, 0, 1)))[11],
  "two": told(udp(question("web.test", counts=(2, 0, 0, 0)))),
  "update": told(udp(question("web.test", flags=0x2800))),
  "an answer": told(udp(question("web.test", flags=0x8100), 0.5)), "short": told(udp(b"\\0" * 11, 0.5)),
  "tcp": sorted(tcp(question("web.test"), question("other.test"), question("web.test", 28))),
}
s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(10)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
for i in range(400):
    s.sendto(question(f"x{i}.test", id=i), ("127.0.0.1", 53)); time.sleep(0.0001)
codes = [s.recv(600)[3] & 15 for i in range(400)]
found["flood"] = sorted(set(codes))
found["after"] = told(udp(question("web.test")))
print(json.dumps(found))""")
    one = [0, 1, [127, 64, 0, 1]]
    assert seen == {
        "a": one, "case": one, "aaaa": [0, 0, 0], "https": [0, 0, 0], "unlisted": [3, 0, 0],
        "broken": [2, 0, 0], "localhost": [0, 1, [127, 0, 0, 1]], "ptr": [3, 0, 0], "line end": [3, 0, 0],
        "edns": 1, "two": [1, 0, 0], "update": [4, 0, 0], "an answer": None, "short": None,
        "tcp": [[0, 0, 0], one, [3, 0, 0]], "flood": [3], "after": one,
    }  # fmt: skip
    names = {line.split()[1] for line in box.proxy.asked if not line.split()[1].startswith("x")}
    assert names == {"web.test", "other.test", "broken.test"}


@rootless
def test_in_an_image(box: Box) -> None:
    """Whose resolv.conf is a link to nowhere, as systemd leaves it, and which has no hosts file."""
    root = box.person.home / ".local/state/bawn/images/small/rootfs"
    programs = ["/usr/bin/bash", "/usr/bin/cat"]
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout
    for file in {*programs, *re.findall(r"(/\S+) \(0x", listed)}:
        box.person.make(root / os.path.dirname(file)[1:])
        shutil.copy(os.path.realpath(file), root / file[1:])
    box.person.make(root / "etc")
    (root / "etc/resolv.conf").symlink_to("../run/systemd/resolve/stub-resolv.conf")
    for path in (root, *root.parents):
        if path.is_relative_to(box.person.home):
            os.chown(path, box.person.uid, box.person.gid)
    box.image = "small"
    ask = "exec 3<>/dev/tcp/$0/80; printf 'GET / HTTP/1.1\\r\\nHost: there\\r\\n\\r\\n' >&3; cat <&3"
    out = box.run("/usr/bin/bash", "-c", f"cat /etc/resolv.conf; {ask}", "web.test")
    assert out.startswith("nameserver 127.0.0.1\noptions ndots:0 timeout:5 attempts:2\nHTTP/1.1 200 OK")
    assert out.endswith("hello there\n")
    serve = box.run("/usr/bin/bash", "-c", "exec 3<>/dev/tcp/localhost/3128 && echo there")
    assert serve == "there\n"


@each
def test_no_proxy_no_run(box: Box) -> None:
    box.proxy.die()
    child = box.start("sh", "-c", "echo ran")
    out, err = child.communicate(timeout=30)
    assert out == ""
    assert child.returncode == 125
    assert "cannot open the way out: the proxy's socket" in err


@rootless
def test_a_proxy_that_does_not_accept_keeps_no_box_alive(box: Box) -> None:
    """connect(2) of the Sentry waits then; signals and the command's end do not."""
    box.proxy.stalled = True
    child = box.start(
        "sh", "-c", "for i in 1 2 3 4; do curl -s -m 1 http://web.test/; done; echo on; sleep 60"
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "on\n"
    child.send_signal(signal.SIGTERM)
    assert child.wait(10) == 128 + signal.SIGTERM


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    need("dockerd", "ip", "nsenter", "runsc")
    with Lab() as made:
        made.import_image()
        runsc_of(made, BAWN)
        yield made


@pytest.mark.parametrize("person", ["owner"], indirect=True)
def test_under_docker(lab: Lab, box: Box) -> None:
    """The same way; and a container of the same daemon without it opens no socket."""
    box.engine, box.image, box.more = "docker", IMAGE, lab.environment
    script = (
        PRELUDE
        + """
import urllib.request
blob = os.urandom(1 << 20)
def both(name):
    s = dial(name, 443)
    def send():
        s.sendall(blob); s.shutdown(socket.SHUT_WR)
    threading.Thread(target=send).start()
    return rest(s) == blob
status = dict(l.split(":\\t", 1) for l in open("/proc/self/status").read().splitlines() if ":\\t" in l)
print(json.dumps({
  "transparent": dial("web.test", 80).send(b"x"), "echo": both("api.test"),
  "proxy": urllib.request.urlopen("http://web.test/").read().decode(),
  "unlisted": tried(lambda: dial("other.test", 443)), "outside": tried(lambda: dial("203.0.113.7", 443, 3)),
  "localhost": socket.gethostbyname("localhost"), "resolver": open("/etc/resolv.conf").read(),
  "caps": [status[k] for k in ("CapPrm", "CapEff", "CapBnd")],
  "open": sorted(int(f) for f in os.listdir("/proc/self/fd"))[:3],
}))"""
    )
    child = box.start("python3", "-c", script)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, ""), (out, err)
    assert json.loads(out) == {
        "transparent": 1, "echo": True, "proxy": "hello web.test by proxy\n", "unlisted": "gaierror",
        "outside": "errno 113", "localhost": "127.0.0.1",
        "resolver": "nameserver 127.0.0.1\noptions ndots:0 timeout:5 attempts:2\n",
        "caps": ["0000000000000000"] * 3, "open": [0, 1, 2],
    }  # fmt: skip
    probe = "import socket; socket.socket(socket.AF_UNIX).connect('/w/proxy.sock')"
    bind = f"type=bind,source={box.proxy.directory},target=/w"
    words = ["run", "--rm", "--runtime", "runsc", "--network", "none", "--user", f"{box.work.stat().st_uid}"]
    plain = lab.docker(*words, "--mount", bind, IMAGE, "python3", "-c", probe, check=False)
    assert "ConnectionRefusedError" in plain.stderr, plain.stderr
