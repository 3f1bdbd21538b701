"""Bridge mode: real dockerd, real runsc and the real wall, in the host namespace of the lab.

The same list is asked three times: on a plain docker bridge, where all of it answers (so the lab works),
behind the wall, where none of it does, and for what the policy lists, which does.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bawn.proof import lab as proof
from tests.system.conftest import BAWN, Person, need
from tests.system.egress_world import ASK, GET, LISTEN, OWN, answers, own_addresses, targets, until
from tests.system.lab import IMAGE, Lab, runsc_of

pytestmark = pytest.mark.system

POLICY = """
version = 1
[wall]
control_plane = ["203.0.113.0/24"]
[profile.out]
engine = "docker"
image = "bawn-test"
workdir = "."
egress = "bridge"
allow = ["api.provider.test"]
"""


class Place:
    """The lab, a docker daemon in its host namespace, and root's work directory."""

    def __init__(self, lab: proof.Lab, docker: Lab, work: Path, person: Person) -> None:
        self.lab, self.docker, self.work = lab, docker, work
        (work / "bawn.toml").write_text(POLICY)
        (work / "ca.pem").write_text(Path(lab.ca).read_text())
        (docker.root / "resolv.conf").write_text("nameserver 93.184.216.53\noptions timeout:1 attempts:1\n")
        self.env = person.environment(**docker.environment)
        self.bawn("trust", "--yes")

    def argv(self, *words: str) -> list[str]:
        script = 'mount --bind "$1" /etc/resolv.conf; shift; exec "$@"'
        return list(self.lab.inside(
            "unshare", "--mount", "--propagation", "slave", "sh", "-ec", script, "sh",
            str(self.docker.root / "resolv.conf"), *words,
        ))  # fmt: skip

    def bawn(self, *words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            self.argv(BAWN, *words), cwd=self.work, env=self.env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=90,
        )  # fmt: skip
        assert done.returncode == code, (words, done.returncode, done.stdout[-1500:], done.stderr[-1500:])
        return done

    def start(self, script: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.argv(BAWN, "run", "--profile", "out", "--", "sh", "-c", script), cwd=self.work,
            env=self.env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def box(self, *command: str) -> str:
        return self.bawn("run", "-q", "--profile", "out", "--", *command).stdout

    def sh(self, script: str) -> str:
        return subprocess.run(
            self.lab.inside("sh", "-ec", script), check=True, capture_output=True, text=True
        ).stdout

    def nothing_left(self) -> None:
        assert self.docker.docker("ps", "--all", "--quiet").stdout == ""
        assert "bawn-" not in self.docker.docker("network", "ls", "--format", "{{.Name}}").stdout
        assert "bwn" not in self.sh("ip -o link")
        assert json.loads(self.bawn("wall", "status", "--json").stdout)["ways"] == []


@pytest.fixture(scope="module")
def place(users: dict[str, Person]) -> Iterator[Place]:
    need("dockerd", "ip", "nsenter", "nft", "runsc", BAWN)
    owner = users["rootless"]  # root acts for the owner of the work directory
    work = owner.make(owner.home / f"bridge-{os.urandom(4).hex()}")
    with proof.Lab() as lab, Lab(network=lab.host) as docker:
        docker.import_image()
        runsc_of(docker, BAWN)
        made = Place(lab, docker, work, users["root"])
        try:
            yield made
        finally:
            subprocess.run(made.argv(BAWN, "wall", "remove", "--force"), capture_output=True)
            subprocess.run(["rm", "-rf", work], check=True)


@pytest.fixture(scope="module")
def walled(place: Place) -> Place:
    place.bawn("wall", "apply")
    place.bawn("wall", "verify")
    return place


@pytest.fixture
def listener(place: Place) -> Iterator[None]:
    """Somebody on every address of the host itself."""
    child = subprocess.Popen(
        place.lab.inside(sys.executable, "-c", LISTEN, *own_addresses()),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert child.stdout and child.stdout.readline() == "ready\n"
        yield
    finally:
        child.kill()
        child.wait()


def test_without_verify_nothing_starts(place: Place) -> None:
    said = place.bawn("run", "-q", "--profile", "out", "--", "true", code=125).stderr
    assert "needs the wall" in said and "sudo bawn wall apply" in said
    place.bawn("wall", "apply")
    said = place.bawn("run", "-q", "--profile", "out", "--", "true", code=125).stderr
    assert "sudo bawn wall verify" in said
    place.bawn("wall", "remove")


def test_a_plain_bridge_reaches_all(place: Place, listener: None) -> None:
    """The control: without a wall everything forbidden answers, so silence means something."""
    make = ("network", "create", "--ipv6", "--subnet", "fd66:aaaa::/64", "plain")
    place.docker.docker(*make)
    try:
        show = place.docker.docker("network", "inspect", "plain").stdout
        gateway = next(c["Gateway"] for c in json.loads(show)[0]["IPAM"]["Config"] if "." in c["Subnet"])
        before = place.lab.packets()
        rows = [row for row in targets(gateway) if ":" not in row[2]]
        out = place.docker.docker(
            "run", "--rm", "--runtime", "runsc", "--network", "plain", "--entrypoint", "python3", IMAGE, "-c",
            ASK, json.dumps(rows),
        ).stdout  # fmt: skip
        found = answers(out)
        silent = {row[0] for row in rows if row[1] != "icmp" and found[row[0]] != "open"}
        assert not silent, found
        assert sum(place.lab.packets().values()) > sum(before.values())
    finally:
        place.docker.docker("network", "rm", "plain")


def test_behind_the_wall_nothing_answers(walled: Place, listener: None) -> None:
    before, asked = walled.lab.packets(), len(walled.lab.contacts())
    peer = walled.start("python3 -m http.server 7000 >/dev/null 2>&1")
    try:
        until(lambda: json.loads(walled.bawn("wall", "status", "--json").stdout)["ways"])
        names = walled.docker.docker(
            "network", "ls", "--filter", "name=bawn-", "--format", "{{.Name}}"
        ).stdout
        until(lambda: addresses(walled, names.strip()))
        found_there = addresses(walled, names.strip())
        assert found_there
        gateway, other = found_there
        found = answers(walled.box("python3", "-c", ASK, json.dumps(targets(gateway, other))))
        # The gateway's own network is another one's here: of this box's own, below.
        opened = {label for label, what in found.items() if what == "open"}
        assert not opened
    finally:
        peer.send_signal(signal.SIGTERM)
        peer.communicate(timeout=30)
    own = answers(walled.box("python3", "-c", OWN))
    assert own and "open" not in own.values(), own
    assert walled.lab.packets() == before
    assert walled.lab.contacts()[asked:] == ()
    walled.nothing_left()


def addresses(place: Place, network: str) -> tuple[str, str] | None:
    """(gateway, the one container's address) of docker's network."""
    shown: dict[str, Any] = json.loads(place.docker.docker("network", "inspect", network).stdout)[0]
    boxes = [c["IPv4Address"].partition("/")[0] for c in shown["Containers"].values()]
    return (shown["IPAM"]["Config"][0]["Gateway"], boxes[0]) if boxes and boxes[0] else None


def test_the_listed_host_by_proxy_and_without(walled: Place) -> None:
    assert walled.box("python3", "-c", GET, "api.provider.test") == "provider\n"
    assert walled.box("python3", "-c", GET, "api.provider.test", "direct") == "provider\n"
    assert walled.box("python3", "-c", GET, "stranger.test").startswith("no:")
    assert walled.box("python3", "-c", GET, "stranger.test", "direct").startswith("no:")
    assert "stranger.test" not in {c.name for c in walled.lab.contacts()}
    walled.nothing_left()


def begun(child: "subprocess.Popen[str]") -> None:
    assert child.stdout and child.stderr
    assert child.stdout.readline() == "begun\n", child.stderr.read()


@pytest.mark.parametrize("act", ["nft delete table inet bawn_wall", "nft flush ruleset"])
def test_a_run_ends_with_its_wall(walled: Place, act: str) -> None:
    child = walled.start("echo begun; sleep 60")
    begun(child)
    started = time.monotonic()
    walled.sh(act)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 125 and "the wall does not hold any more" in err, err
    assert time.monotonic() - started < 8
    walled.bawn("wall", "status", code=1)
    if "ruleset" in act:  # docker's own chains are gone too
        walled.docker.stop()
        walled.docker.start()
    walled.bawn("wall", "apply")
    walled.bawn("wall", "verify")
    walled.nothing_left()


def test_a_killed_bawn_leaves_nothing(walled: Place) -> None:
    child = walled.start("echo begun; sleep 60")
    begun(child)
    child.kill()
    child.communicate()
    until(lambda: walled.docker.docker("ps", "--quiet").stdout == "")
    walled.bawn("sweep")
    walled.nothing_left()


def test_a_daemon_elsewhere_is_refused(walled: Place) -> None:
    """A bawn in another namespace than dockerd would guard the wrong one."""
    with proof.Lab() as other:
        argv = other.inside(BAWN, "wall", "apply")
        subprocess.run(argv, check=True, env=walled.env, cwd=walled.work, capture_output=True)
        subprocess.run(other.inside(BAWN, "wall", "verify"), check=True, env=walled.env, cwd=walled.work,
                       capture_output=True)  # fmt: skip
        done = subprocess.run(
            other.inside(BAWN, "run", "-q", "--profile", "out", "--", "true"),
            env=walled.env, cwd=walled.work, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 125 and "another network namespace" in done.stderr, done.stderr
        subprocess.run(other.inside(BAWN, "wall", "remove", "--force"), check=True, env=walled.env,
                       cwd=walled.work, capture_output=True)  # fmt: skip
    walled.nothing_left()
