"""The service: HTTP on a Unix socket, as a gateway meets it; hostile clients; copies; the audit."""

import array
import http.client
import json
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bawn.effects.outbound import audit, scan, serve
from bawn.effects.outbound.serve import Server
from bawn.effects.outbound.service import MAX_FDS, Service
from bawn.effects.outbound.stage import Stage
from bawn.errors import HostError
from bawn.outbound import http as wire
from bawn.outbound.model import Verdict
from bawn.typed import Any
from tests.unit.outbound_world import SECRET, World


class Running:
    """A server in a thread, and its world."""

    def __init__(self, world: World, **options: Any) -> None:
        self.world = world
        self.state = str(world.home / "state")
        self.path = str(world.top / "s")
        self.service = Service(world.guard(), self.state, **options)
        self.server = Server(self.path, self.service)
        self.thread = threading.Thread(target=self.server.serve)
        self.thread.start()

    def stop(self) -> None:
        self.server.stopped = True
        self.thread.join(5)
        self.service.close()

    def connect(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(10)
        made.connect(self.path)
        return made

    def post(self, target: str, data: Any) -> tuple[int, dict[str, Any], list[int]]:
        with self.connect() as connection:
            connection.sendall(request(target, data))
            return answer(connection)

    def audit(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in Path(self.state, audit.NAME).read_text().splitlines()]


def request(target: str, data: Any, method: str = "POST") -> bytes:
    kind = "text/plain" if isinstance(data, str) else "application/json"
    body = data.encode() if isinstance(data, str) else json.dumps(data).encode()
    head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def answer(connection: socket.socket) -> tuple[int, dict[str, Any], list[int]]:
    data, ancillary, _, _ = connection.recvmsg(1 << 20, socket.CMSG_SPACE(4 * 200))
    fds = array.array("i")
    for _, kind, content in ancillary:
        assert kind == socket.SCM_RIGHTS
        fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    while b"\r\n\r\n" not in data:
        more = connection.recv(1 << 20)
        assert more, data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:"))
    while len(body) < length:
        body += connection.recv(1 << 20)
    return int(head.split()[1]), json.loads(body), list(fds)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setattr(serve, "_TICK", 0.02)
    return made


@pytest.fixture
def running(world: World) -> Iterator[Running]:
    made = Running(world)
    yield made
    made.stop()
    assert not os.path.exists(made.path)


def test_check(running: Running) -> None:
    world = running.world
    status, data, fds = running.post("/check", f"{world.vault}/a.md and {world.outside}/secret.md")
    assert (status, data["denied"], fds) == (200, 1, [])
    assert [one["rule"] for one in data["files"]] == ["BWN900", "BWN901"]
    lines = running.audit()
    assert [(line["call"], line["rule"], line["allowed"]) for line in lines] == [
        ("check", "BWN900", True),
        ("check", "BWN901", False),
    ]
    assert "report" not in json.dumps(lines)
    assert stat.S_IMODE(os.stat(f"{running.state}/{audit.NAME}").st_mode) == 0o600


def test_open_gives_descriptors(running: Running) -> None:
    world = running.world
    files = [f"{world.outside}/secret.md", f"{world.vault}/a.md", f"{world.vault}/sub/b.md"]
    status, data, fds = running.post("/open", {"uploads": files})
    assert status == 200 and len(fds) == 2
    assert [one.get("fd") for one in data["files"]] == [None, 0, 1]
    (world.vault / "a.md").unlink()  # the name counts for nothing any more
    (world.vault / "a.md").symlink_to(world.outside / "secret.md")
    assert [os.read(fd, 100) for fd in fds] == [b"a report", b"another"]
    for fd in fds:
        os.close(fd)


def test_no_more_descriptors_than_one_answer_may_have(running: Running) -> None:
    files = [str(running.world.write(running.world.vault / f"{n}.md")) for n in range(MAX_FDS + 3)]
    _, data, fds = running.post("/open", files)
    assert len(fds) == MAX_FDS
    assert [one["rule"] for one in data["files"][MAX_FDS:]] == ["BWN938"] * 3
    for fd in fds:
        os.close(fd)


def test_stage_and_unstage(running: Running) -> None:
    world = running.world
    _, data, _ = running.post("/stage", f"MEDIA:{world.vault}/a.md {world.outside}/secret.md")
    copy, other = data["files"]
    assert Path(copy["staged"]).read_bytes() == b"a report" and Path(copy["staged"]).name == "a.md"
    assert stat.S_IMODE(os.stat(copy["staged"]).st_mode) == 0o400
    assert stat.S_IMODE(os.stat(Path(copy["staged"]).parent).st_mode) == 0o700
    assert "staged" not in other
    (world.vault / "a.md").write_bytes(SECRET)
    assert Path(copy["staged"]).read_bytes() == b"a report"
    assert running.post("/unstage", {"token": copy["token"]})[1]["removed"] is True
    assert not os.path.exists(copy["staged"])
    for token in (copy["token"], "../..", "", "x" * 32):
        assert running.post("/unstage", {"token": token})[1]["removed"] is False
    assert running.post("/unstage", {"token": 1})[0] == 400


def test_old_copies_go(world: World) -> None:
    stage = Stage(str(world.home / "state"))
    fd = os.open(world.vault / "a.md", os.O_RDONLY)
    verdict = Verdict(True, "BWN900", "", "", str(world.vault / "a.md"), 8)
    old, new = (stage.copy(verdict, fd, 100) for _ in range(2))
    os.close(fd)
    os.utime(os.path.dirname(old.path), (time.time() - 7200,) * 2)
    assert stage.sweep() == 1
    assert not os.path.exists(old.path) and os.path.exists(new.path)
    os.chmod(stage.top, 0o755)
    with pytest.raises(HostError):
        Stage(str(world.home / "state"))


def test_several_requests_on_one_connection(running: Running) -> None:
    connection = http.client.HTTPConnection("x")
    connection.sock = running.connect()
    for _ in range(3):
        connection.request("POST", "/check", "/etc/passwd", {"Content-Type": "text/plain"})
        assert json.load(connection.getresponse())["denied"] == 1
    connection.request("GET", "/health")
    assert json.load(connection.getresponse())["drifted"] == []
    connection.close()
    with running.connect() as several:  # sent at once
        several.sendall(request("/check", "/etc/passwd") * 3)
        for _ in range(3):
            several.settimeout(5)
        data = b""
        while data.count(b'"denied":1') < 3:
            data += several.recv(1 << 16)


def test_a_client_that_waits_for_continue(running: Running) -> None:
    with running.connect() as connection:
        head, _, body = request("/check", "/etc/passwd").partition(b"\r\n\r\n")
        connection.sendall(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(100) == wire.CONTINUE
        connection.sendall(body)
        assert answer(connection)[0] == 200


CHUNKED = b"POST /check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (b"GET /health\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\n\r\n", 400),
        (b"GET /health HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        (b"GET  /health HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\nHost: x\n\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost : x\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"POST /check HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST /check HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /check HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n", 400),
        (b"POST /check HTTP/1.1\r\nHost: x\r\nContent-Length: 4194305\r\n\r\n", 413),
        (b"POST /check HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n", 400),
        (b"POST /check HTTP/1.1\r\nHost: x\r\n\r\n", 411),
        (CHUNKED, 501),
        (b"POST /check HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nContent-Length: 0\r\n\r\n", 417),
        (b"GET /" + b"a" * 20_000, 431),
        (b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 100 + b"\r\n", 431),
        (b"GET /other HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        (b"GET /check HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (request("/check", "x").replace(b"text/plain", b"text/html"), 415),
        (request("/check", "x").replace(b"/plain", b"/plain;charset=utf-8"), 200),
        (request("/check", "xx").replace(b"\r\n\r\nxx", b"\r\n\r\n\xff\xff"), 400),
        (request("/check", ["x"]).replace(b'["x"]', b'["x",'), 400),
        (request("/check", {"a": 1}).replace(b'{"a": 1}', b'{"a"::}}'), 400),
        (b"POST /check HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n"
         b'{"a":1,"a":"2"}', 400),
        (request("/check", [[]]).replace(b"Content-Length: 4", b"Content-Length: 200000")[:-4]
         + b"[" * 200_000, 400),
        (request("/check", json.loads("[" * 40 + '"/v/a.md"' + "]" * 40)), 400),
    ],
)  # fmt: skip
def test_what_is_malformed_has_a_status(running: Running, sent: bytes, status: int) -> None:
    with running.connect() as connection:
        connection.sendall(sent)
        assert answer(connection)[0] == status
    assert running.post("/check", "/etc/passwd")[0] == 200  # it lives


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300), st.binary(max_size=60))
def test_the_parser_never_fails_otherwise(first: bytes, second: bytes) -> None:
    for data in (
        first,
        b"POST /check HTTP/1.1\r\n" + first + b"\r\n\r\n",
        b"POST " + first + b"\r\n\r\n" + second,
    ):
        try:
            wire.head(data)
            wire.body("application/json", second)
        except wire.Refused as error:
            assert 400 <= error.status < 600


def test_a_slow_client_is_ended_and_holds_up_nobody(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "REQUEST", 0.5)
    running = Running(world)
    try:
        with running.connect() as slow:
            slow.sendall(b"POST /check HTTP/1.1\r\n")
            assert running.post("/check", "/etc/passwd")[0] == 200
            assert answer(slow)[0] == 408
        with running.connect() as early:
            early.sendall(request("/check", "x" * 100)[:-50])
            early.shutdown(socket.SHUT_WR)
            assert answer(early)[0] == 400
    finally:
        running.stop()


def test_no_more_connections_than_allowed(running: Running) -> None:
    held = [running.connect() for _ in range(serve.MAX_CONNECTIONS)]
    try:
        with running.connect() as one_more:
            assert answer(one_more)[0] == 503
    finally:
        for connection in held:
            connection.close()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            status = running.post("/check", "/etc/passwd")[0]
        except OSError:
            continue
        if status == 200:
            return
    pytest.fail("the connections were not given back")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_is_not_answered(running: Running) -> None:
    os.chmod(running.path, 0o777)
    for above in Path(running.path).parents:
        if above.is_relative_to("/tmp/") and above != Path("/tmp"):
            os.chmod(above, 0o755)
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setuid(65534)
            with running.connect() as connection:
                connection.sendall(request("/check", "/etc/passwd"))
                code = 1 if connection.recv(10) else 0
        except ConnectionError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_socket_is_private_and_no_other_is_taken(running: Running, tmp_path: Path) -> None:
    assert stat.S_IMODE(os.stat(running.path).st_mode) == 0o600
    with pytest.raises(HostError, match="another service"):
        Server(running.path, running.service)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(HostError, match="no socket of yours"):
        Server(str(file), running.service)
    assert file.exists()
    (tmp_path / "open").mkdir()
    os.chmod(tmp_path / "open", 0o777)
    with pytest.raises(HostError, match="others can change"):
        Server(str(tmp_path / "open/s"), running.service)
    dead = tmp_path / "dead"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(dead))
    server = Server(str(dead), running.service)
    server.stopped = True
    server.serve()
    assert not dead.exists()


def test_denied_files_are_not_named_where_the_chat_may_read(world: World) -> None:
    running = Running(world, hide=True)
    try:
        _, data, _ = running.post(
            "/check", f"{world.outside}/secret.md {world.vault}/a.md {world.vault}/.env"
        )
        assert [one["asked"] for one in data["files"]] == ["", f"{world.vault}/a.md", ""]
        assert "secret" not in json.dumps(data) and ".env" not in json.dumps(data).replace(".env*", "")
        assert any("secret.md" in line["asked"] for line in running.audit())
    finally:
        running.stop()


def test_what_cannot_be_written_down_does_not_leave(running: Running) -> None:
    os.mkdir(f"{running.state}/{audit.NAME}")
    before = len(os.listdir("/proc/self/fd"))
    status, data, fds = running.post("/open", f"{running.world.vault}/a.md")
    assert (status, fds) == (500, []) and "nothing leaves" in data["error"]
    time.sleep(0.05)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_the_audit_is_cut(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "LIMIT", 200)
    state = str(world.home / "state")
    for _ in range(3):
        audit.record(state, "check", [Verdict(False, "BWN901", "", "/x" * 5000)])
    assert {audit.NAME, f"{audit.NAME}.1"} <= set(os.listdir(state))
    assert all(len(line) < 1500 for line in Path(state, audit.NAME).read_text().splitlines())


class Finding:
    type = "AWS Access Key"


def test_content_that_looks_like_a_secret(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for detect-secrets; the real one is met in tests/system/test_outbound.py."""
    import contextlib
    import types

    def scan_line(line: str) -> Iterator[Finding]:
        if "AKIA" in line:
            yield Finding()

    modules = {
        "detect_secrets.core.scan": types.SimpleNamespace(scan_line=scan_line),
        "detect_secrets.settings": types.SimpleNamespace(default_settings=contextlib.nullcontext),
    }
    monkeypatch.setattr(scan, "import_module", modules.__getitem__)
    monkeypatch.setattr(scan, "LIMIT", 1000)
    service = Service(world.guard(), str(world.home / "state"), scan=True)
    world.write(world.vault / "key.md", b"ok\nkey = AKIAIOSFODNN7EXAMPLE\n")
    world.write(world.vault / "long.md", b"x" * 1001)
    files = [f"{world.vault}/{name}" for name in ("a.md", "key.md", "long.md")]
    for call in ("check", "stage", "open"):
        result = service.call(call, files)
        assert [one["rule"] for one in result.data["files"]] == ["BWN900", "BWN940", "BWN941"]
        assert "IOSFODNN" not in json.dumps(result.data)
        assert len(result.fds) == (call == "open")
        for fd in result.fds:
            os.close(fd)

    def missing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(scan, "import_module", missing)
    assert service.call("check", files).data["files"][0]["rule"] == "BWN941"
    service.close()
