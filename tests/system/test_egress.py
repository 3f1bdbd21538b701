"""The one way out, whole: real boxes of both engines, as root and rootless, in the host namespace of the lab.

The list of `egress_world` is that of test_bridge.py, where a plain bridge shows that all of it answers.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bawn.proof import lab as proof
from tests.system.conftest import BAWN, Person, need
from tests.system.egress_world import ASK, GET, answers, targets, until
from tests.system.lab import IMAGE, Lab, runsc_of

pytestmark = pytest.mark.system

POLICY = """
version = 1
[wall]
control_plane = ["203.0.113.0/24"]
[profile.out]
ENGINE
workdir = "."
egress = "proxy"
allow = ["api.provider.test"]
[profile.claude]
ENGINE
agent = "claude"
workdir = "."
egress = "proxy"
allow = ["@anthropic"]
secrets = ["ANTHROPIC_API_KEY"]
env = { NODE_EXTRA_CA_CERTS = "WORK/ca.pem" }
"""
WHO = ["root", "rootless", "docker"]


class Place:
    """The lab, a docker daemon in its host namespace, and somebody's work directory."""

    def __init__(self, lab: proof.Lab, docker: Lab, person: Person, work: Path, engine: str) -> None:
        self.lab, self.docker, self.person, self.work, self.engine = lab, docker, person, work, engine
        chosen = f'engine = "docker"\nimage = "{IMAGE}"' if engine == "docker" else ""
        person.make(work / "bawn.toml", POLICY.replace("WORK", str(work)).replace("ENGINE", chosen))
        person.make(work / "ca.pem", Path(lab.ca).read_text())
        self.env = person.environment(ANTHROPIC_API_KEY="sk-lab", **docker.environment)
        assert self.bawn("trust", "--yes").returncode == 0

    def argv(self, *words: str) -> list[str]:
        script = 'mount --bind "$1" /etc/resolv.conf; shift; exec "$@"'
        user = ["setpriv", f"--reuid={self.person.uid}", f"--regid={self.person.gid}", "--clear-groups"]
        return list(self.lab.inside(
            "unshare", "--mount", "--propagation", "slave", "sh", "-ec", script, "sh",
            str(self.docker.root / "resolv.conf"), *user, *words,
        ))  # fmt: skip

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.argv(BAWN, *words), cwd=self.work, env=self.env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def bawn(self, *words: str) -> "subprocess.CompletedProcess[str]":
        with self.start(*words) as child:
            out, err = child.communicate(timeout=90)
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)

    def box(self, *command: str) -> str:
        done = self.bawn("run", "-q", "-p", "out", "--", *command)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr[-2000:]
        return done.stdout


@pytest.fixture(scope="module")
def labs() -> Iterator[tuple[proof.Lab, Lab]]:
    need("dockerd", "ip", "nsenter", "setpriv", "nft", "runsc", BAWN)
    with proof.Lab() as lab, Lab(network=lab.host) as docker:
        docker.import_image()
        runsc_of(docker, BAWN)
        (docker.root / "resolv.conf").write_text("nameserver 93.184.216.53\noptions timeout:1 attempts:1\n")
        yield lab, docker


@pytest.fixture(params=WHO)
def place(
    request: pytest.FixtureRequest, labs: tuple[proof.Lab, Lab], users: dict[str, Person]
) -> Iterator[Place]:
    owner = users["rootless"]
    work = owner.make(owner.home / f"egress-{os.urandom(4).hex()}")
    person = users["rootless" if request.param == "rootless" else "root"]
    made = Place(*labs, person, work, "docker" if request.param == "docker" else "gvisor")
    try:
        yield made
    finally:
        subprocess.run(["rm", "-rf", work], check=True)


def test_nothing_forbidden_answers(place: Place) -> None:
    before, asked = place.lab.packets(), len(place.lab.contacts())
    found = answers(place.box("python3", "-c", ASK, json.dumps(targets("10.0.0.1"))))
    # 127.0.0.1 answers DNS; of the list nothing does.
    assert "open" not in found.values(), {label for label, what in found.items() if what == "open"}
    assert place.lab.packets() == before and place.lab.contacts()[asked:] == ()


def test_the_listed_host_and_no_other(place: Place) -> None:
    for words, want in (
        (("api.provider.test",), "provider\n"),
        (("api.provider.test", "direct"), "provider\n"),
        (("stranger.test",), "no:"),
        (("stranger.test", "direct"), "no:"),
        (("private.test", "direct"), "no:"),
    ):
        assert place.box("python3", "-c", GET, *words).startswith(want), words
    assert not {"stranger.test", "private.test"} & {c.name for c in place.lab.contacts()}


SEEN = """
import socket
for name in ("api.provider.test", "stranger.test", "stranger.test", "169.254.169.254"):
    with socket.create_connection(("127.0.0.1", 3128)) as s:
        s.sendall(f"CONNECT {name}:443 HTTP/1.1\\r\\nHost: {name}:443\\r\\n\\r\\n".encode())
        print(s.recv(999).split()[1].decode())
"""


def test_learn_and_log(place: Place) -> None:
    done = place.bawn("run", "-p", "out", "--learn", "--", "python3", "-c", SEEN)
    assert done.stdout.split() == ["200", "403", "403", "403"]
    said = done.stderr
    assert '+  "stranger.test",   # refused 2 times' in said
    assert "never allowed: 169.254.169.254" in said and '"169.254' not in said
    run = json.loads(place.bawn("runs", "-n", "1", "--json").stdout.splitlines()[0])["run"]
    rows = [json.loads(line) for line in
            place.bawn("egress", "log", "--json", "--denied", "--run", run).stdout.splitlines()]  # fmt: skip
    assert [row["rule"] for row in rows] == ["BWN801", "BWN801", "BWN811"]
    assert {row["profile"] for row in rows} == {"out"}


ASK_TWICE = """
import socket, sys
def ask():
    with socket.create_connection(("127.0.0.1", 3128)) as s:
        s.sendall(b"CONNECT stranger.test:443 HTTP/1.1\\r\\nHost: stranger.test:443\\r\\n\\r\\n")
        return s.recv(999).split()[1].decode()
print(ask(), flush=True)
import time
end = time.monotonic() + 40
while ask() != "200":
    assert time.monotonic() < end
    time.sleep(0.1)
print("200")
"""


def test_reload_and_status(place: Place) -> None:
    """A policy that is not trusted, or does not load, replaces nothing; one that is, holds at once."""
    child = place.start("run", "-q", "-p", "out", "--", "python3", "-c", ASK_TWICE)
    try:
        assert child.stdout and child.stdout.readline() == "403\n"
        said = place.bawn("egress", "status", "--json")
        rows = json.loads(said.stdout)["runs"]
        mine = [row for row in rows if row["profile"] == "out" and row["denied"] >= 1]
        assert len(mine) == 1, said
        assert mine[0]["lines"] == 1
        policy = place.work / "bawn.toml"
        better = policy.read_text().replace('["api.provider.test"]', '["api.provider.test", "stranger.test"]')
        policy.write_text(better)
        refused = place.bawn("egress", "reload")
        assert refused.returncode == 1 and "not trusted" in refused.stderr
        assert place.bawn("trust", "--yes").returncode == 0
        until(lambda: place.bawn("egress", "reload", "--run", mine[0]["run"]).returncode == 0)
        out, err = child.communicate(timeout=60)
        assert (out, err, child.returncode) == ("200\n", "", 0)
    finally:
        child.kill()


def test_claude_by_its_own_way(place: Place) -> None:
    """The whole loop: the marker in the answer is made by the tool, in the box."""
    script = "RUN: echo $((6 * 7))-$(uname -r) > made; cat made"
    done = place.bawn("claude", "-p", script)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    assert "42-4.4.0" in done.stdout, done.stdout[-2000:]
    assert (place.work / "made").read_text().startswith("42-")
