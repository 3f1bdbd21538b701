"""The daemon's API: what it answers, what it garbles, what it does not answer at all."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from bawn import unix_http
from bawn.effects import docker_api
from bawn.errors import EngineError, HostError
from tests.unit.fake_dockerd import FakeDockerd

ID = "a" * 64


def test_inspect(tmp_path: Path) -> None:
    with FakeDockerd(tmp_path, {("GET", "/containers/x/json"): (200, b'{"Id": "abc"}')}) as fake:
        assert docker_api.inspect(fake.path, "x") == {"Id": "abc"}
        assert docker_api.inspect(fake.path, "other") is None


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{", b"\xff"])
def test_an_answer_that_is_no_object(tmp_path: Path, body: bytes) -> None:
    with (
        FakeDockerd(tmp_path, {("GET", "/containers/x/json"): (200, body)}) as fake,
        pytest.raises(EngineError),
    ):
        docker_api.inspect(fake.path, "x")


def test_the_daemons_own_message_is_kept(tmp_path: Path) -> None:
    with (
        FakeDockerd(tmp_path, {("GET", "/containers/x/json"): (500, b'{"message": "disk full"}')}) as fake,
        pytest.raises(EngineError, match=r"500.*disk full"),
    ):
        docker_api.inspect(fake.path, "x")


@pytest.mark.parametrize(
    "raw", [b"", b"SSH-2.0-x\r\n", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.0\r\n\r\n", b"HTTP/1.0 abc\r\n\r\n"]
)
def test_something_else_listens(tmp_path: Path, raw: bytes) -> None:
    with FakeDockerd(tmp_path, raw=raw) as fake, pytest.raises(HostError, match="HTTP"):
        unix_http.ask(fake.path, "GET", "/info")


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="No such file"):
        unix_http.ask(f"{tmp_path}/none", "GET", "/info")
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match="refused"):
        unix_http.ask(f"{tmp_path}/file", "GET", "/info")


def test_a_path_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="too long"):
        unix_http.ask("/" + "x" * 200, "GET", "/info")


def test_a_daemon_that_hangs(tmp_path: Path) -> None:
    with FakeDockerd(tmp_path) as fake:
        fake.hang = True
        start = time.monotonic()
        with pytest.raises(HostError, match="late"):
            unix_http.ask(fake.path, "GET", "/info", timeout=0.2)
        assert time.monotonic() - start < 2


def test_an_answer_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix_http, "CAP", 1000)
    with (
        FakeDockerd(tmp_path, {("GET", "/info"): (200, b"x" * 5000)}) as fake,
        pytest.raises(HostError, match="larger"),
    ):
        unix_http.ask(fake.path, "GET", "/info")


@pytest.mark.parametrize(("status", "running"), [(204, True), (404, False), (409, False)])
def test_kill(tmp_path: Path, status: int, running: bool) -> None:
    with FakeDockerd(tmp_path, {("POST", "/containers/x/kill"): (status, b"")}) as fake:
        assert docker_api.kill(fake.path, "x", 15) is running
        assert fake.asked == [("POST", "/containers/x/kill?signal=15")]


def test_kill_that_fails(tmp_path: Path) -> None:
    with (
        FakeDockerd(tmp_path, {("POST", "/containers/x/kill"): (500, b'{"message": "m"}')}) as fake,
        pytest.raises(EngineError, match="500 to kill: m"),
    ):
        docker_api.kill(fake.path, "x", 15)


def test_remove_waits_for_a_removal_in_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeDockerd(tmp_path, {("DELETE", "/containers/x"): (409, b'{"message": "in progress"}')})
    monkeypatch.setattr(docker_api, "_pause", lambda _: fake.answers.clear())
    with fake:
        docker_api.remove(fake.path, "x")
        assert len(fake.asked) == 2


def test_remove_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_api, "_pause", lambda _: None)
    with (
        FakeDockerd(tmp_path, {("DELETE", "/containers/x"): (409, b'{"message": "m"}')}) as fake,
        pytest.raises(EngineError, match="does not remove"),
    ):
        docker_api.remove(fake.path, "x")


def test_an_images_name_is_quoted(tmp_path: Path) -> None:
    with FakeDockerd(tmp_path) as fake:
        docker_api.image(fake.path, "a/b:c?x=1#é")
        assert fake.asked == [("GET", "/images/a%2Fb%3Ac%3Fx%3D1%23%C3%A9/json")]


def event(action: str, **attributes: str) -> bytes:
    return json.dumps({"Action": action, "Actor": {"ID": ID, "Attributes": attributes}}).encode() + b"\n"


def test_events(tmp_path: Path) -> None:
    body = event("create") + event("start") + b"\n" + event("die", exitCode="137") + event("destroy")[:-1]
    with FakeDockerd(tmp_path, {("GET", "/events"): (200, body)}) as fake:
        with docker_api.Events(fake.path, "bawn-x") as events:
            seen = []
            deadline = time.monotonic() + 5
            while events.open and time.monotonic() < deadline:
                seen += events.read()
        assert [(e.action, e.exit) for e in seen] == [("create", -1), ("start", -1), ("die", 137)]
        assert not events.open
        assert fake.asked == [("GET", "/events?filters=%7B%22container%22%3A%20%5B%22bawn-x%22%5D%7D")]


def test_no_events(tmp_path: Path) -> None:
    with FakeDockerd(tmp_path) as fake, pytest.raises(HostError, match="404"):
        docker_api.Events(fake.path, "x")


@pytest.mark.parametrize("what", ["runsc-sandbox", "runsc-gofer"])
def test_leftovers_of_one_container_are_ended(what: str) -> None:
    """The file server names the container only in the path of its bundle."""
    words = {"runsc-sandbox": ["boot", ID], "runsc-gofer": ["gofer", f"--bundle=/run/{ID}", "--x"]}[what]
    script = "read -r _"
    ours = subprocess.Popen([what, "-c", script, *words], executable="/bin/sh", stdin=subprocess.PIPE)
    other = subprocess.Popen([what, "-c", script, "b" * 64], executable="/bin/sh", stdin=subprocess.PIPE)
    impostor = subprocess.Popen(["sh", "-c", script, *words], stdin=subprocess.PIPE)
    try:
        time.sleep(0.1)
        docker_api.end_leftovers("")  # matches nothing, and not everything
        docker_api.end_leftovers(ID[:12])
        assert ours.poll() is None
        docker_api.end_leftovers(ID)
        assert ours.wait(5) == -9
        assert (other.poll(), impostor.poll()) == (None, None)
    finally:
        for child in (ours, other, impostor):
            child.kill()
            child.wait()
            assert child.stdin
            child.stdin.close()


def test_nothing_is_inherited(tmp_path: Path) -> None:
    with (
        FakeDockerd(tmp_path, {("GET", "/events"): (200, b"")}) as fake,
        docker_api.Events(fake.path, "x") as events,
    ):
        assert not os.get_inheritable(events.fileno())


MADE = b'{"IPAM": {"Config": [{"Subnet": "172.18.0.0/16", "Gateway": "172.18.0.1/16"}]}}'


def test_a_network_of_its_own(tmp_path: Path) -> None:
    answers = {("POST", "/networks/create"): (201, b"{}"), ("GET", "/networks/n"): (200, MADE)}
    with FakeDockerd(tmp_path, answers) as fake:
        assert docker_api.make_network(fake.path, "n", "bwn1", "bawn.run") == "172.18.0.1"


@pytest.mark.parametrize("made", [b"{}", b'{"IPAM": {"Config": [{"Subnet": "fd00::/64"}]}}'])
def test_a_network_without_a_gateway(tmp_path: Path, made: bytes) -> None:
    answers = {("POST", "/networks/create"): (201, b"{}"), ("GET", "/networks/n"): (200, made)}
    with FakeDockerd(tmp_path, answers) as fake, pytest.raises(EngineError, match="no gateway"):
        docker_api.make_network(fake.path, "n", "bwn1", "bawn.run")


def test_no_network_is_left_for_it(tmp_path: Path) -> None:
    answers = {("POST", "/networks/create"): (403, b'{"message": "could not find an available pool"}')}
    with FakeDockerd(tmp_path, answers) as fake, pytest.raises(EngineError, match=r"403.*available pool"):
        docker_api.make_network(fake.path, "n", "bwn1", "bawn.run")


@pytest.mark.parametrize(("status", "good"), [(204, True), (404, True), (403, False), (500, False)])
def test_remove_network(tmp_path: Path, status: int, good: bool) -> None:
    with FakeDockerd(tmp_path, {("DELETE", "/networks/n"): (status, b"{}")}) as fake:
        if good:
            docker_api.remove_network(fake.path, "n")
        else:
            with pytest.raises(EngineError, match="remove the network n"):
                docker_api.remove_network(fake.path, "n")
