"""The wall in a network namespace of its own: applied, tried with packets, flushed, mutated, removed.

No packet leaves the namespaces that the tests make.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.conftest import BAWN, need

pytestmark = pytest.mark.system

FORWARD = "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding"
# Bridged packets are shown to iptables in some kernels: what holds must hold without that.
NO_BR_NETFILTER = "for f in /proc/sys/net/bridge/bridge-nf-call-ip*tables; do [ ! -e $f ] || echo 0 >$f; done"


class Place:
    """A namespace, and bawn in it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, *argv: str, check: bool = True, **more: Any) -> "subprocess.CompletedProcess[str]":
        where = ["nsenter", f"--net=/run/netns/{self.name}", *argv]
        done = subprocess.run(where, capture_output=True, text=True, timeout=60, check=False, **more)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def sh(self, script: str) -> str:
        return self.run("sh", "-ec", script).stdout

    def bawn(self, *words: str, code: int = 0) -> dict[str, Any]:
        done = self.run(BAWN, "wall", *words, "--json", check=False, cwd="/")
        assert done.returncode == code, done.stdout + done.stderr
        return dict(json.loads(done.stdout))

    def rules(self, *words: str, code: int = 0) -> list[str]:
        """The rule ids of a verb's findings."""
        return [one["rule"] for one in self.bawn(*words, code=code)["findings"]]

    def api(self, script: str) -> str:
        """A piece of Python with `wall` and `where`, in the namespace, as a run would call it."""
        head = "from bawn.effects import wall; where = wall.place('/run/bawn')\n"
        return self.run(sys.executable, "-c", head + script).stdout.strip()

    def nft(self, text: str) -> None:
        self.run("nft", "-f", "-", input=text)


@pytest.fixture
def place() -> Iterator[Place]:
    need("ip", "nft", "nsenter", "unshare", "iptables", BAWN)
    made = Place(f"bawn-walltest-{os.getpid()}-{os.urandom(2).hex()}")
    subprocess.run(["ip", "netns", "add", made.name], check=True)
    try:
        made.sh(f"ip link set lo up; {FORWARD}; {NO_BR_NETFILTER}")
        yield made
    finally:
        inode = os.stat(f"/run/netns/{made.name}").st_ino
        shutil.rmtree(f"/run/bawn/wall/{inode}", ignore_errors=True)
        subprocess.run(["ip", "netns", "delete", made.name], check=True)


def errors(findings: list[str]) -> list[str]:
    from bawn.plan.wall_rules import RULES

    return [rule for rule in findings if RULES[rule].severity == "error"]


def test_nothing_holds_before_and_everything_after(place: Place) -> None:
    """The control: each target answers a box before the wall stands, in both families."""
    before = place.bawn("verify", code=1)["findings"]
    reached = {one["rule"] for one in before if one["rule"].startswith("BWN88")}
    assert reached == {"BWN880", "BWN882", "BWN883", "BWN884"}
    assert sum("tcp 8080, udp 8080, icmp, raw" in one["message"] for one in before) == 5
    assert place.bawn("apply")["changed"] is True
    after = place.bawn("verify")
    assert after["holds"] is True
    assert errors([one["rule"] for one in after["findings"]]) == []
    assert "BWN886" not in [one["rule"] for one in after["findings"]]  # the control's twin reached them all
    counters = place.bawn("status")["counters"]
    for name in ("host_tcp", "host_udp", "host_icmp", "host_other", "net_tcp", "net_udp", "net_icmp",
                 "net_other", "box_new", "frame_other", "frame_arp", "peer"):  # fmt: skip
        assert counters[name] > 0, name
    assert place.sh("ip -o link").count("\n") == 1  # nothing but loopback is left


def test_a_second_apply_changes_nothing(place: Place) -> None:
    place.bawn("apply")
    place.bawn("verify")
    before = place.sh("nft -a list ruleset")  # handles and counters too
    assert place.bawn("apply")["changed"] is False
    assert place.sh("nft -a list ruleset") == before


FOREIGN = """
table ip nat { chain DOCKER_OUTPUT { type nat hook output priority -100
  ip daddr 127.0.0.11 tcp dport 53 dnat to 127.0.0.11:4242; }; }
table inet other { set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 }; }
  chain in { type filter hook input priority 0; policy accept; ip saddr @s counter accept; }; }
table bridge theirs { chain f { type filter hook forward priority 0; policy accept; counter; }; }
"""
IPTABLES = """
iptables -N DOCKER-USER; iptables -A DOCKER-USER -j RETURN; iptables -I FORWARD -j DOCKER-USER
iptables -A FORWARD -i docker0 -j ACCEPT; iptables -P FORWARD DROP
iptables-legacy -A INPUT -s 192.0.2.1 -j DROP; ip6tables-legacy -A INPUT -p udp --dport 1 -j DROP
"""


# Without comments (the time) and counters of packets.
LEGACY = "for f in ip ip6; do ${f}tables-legacy-save | sed '/^#/d; s/ [[][0-9:]*]$//'; done"


def everything(place: Place) -> str:
    return place.sh(f"nft -s list ruleset; {LEGACY}")


def test_foreign_tables_are_byte_identical(place: Place) -> None:
    """N20, N11: also docker's redirect of 127.0.0.11, and both back-ends of iptables."""
    place.nft(FOREIGN)
    place.sh(IPTABLES)
    before = everything(place)
    rules = place.rules("apply")
    assert "BWN874" in rules
    assert "BWN871" not in rules
    assert "BAWN-WALL" in place.sh("iptables-nft-save")
    assert "BAWN-WALL" in place.sh("ip6tables-nft-save")
    for table in ("ip nat", "inet other", "bridge theirs"):  # all but docker's own filter
        assert place.sh(f"nft -s list table {table}") in before
    assert place.sh(LEGACY) in before
    place.bawn("verify")
    assert place.bawn("remove")["removed"] is True
    assert everything(place) == before
    assert place.bawn("remove")["removed"] is False


def test_the_second_layer(place: Place) -> None:
    """N04, N15: found from the hook; put first again; flushed, the wall still holds."""
    place.sh(IPTABLES)
    place.bawn("apply")
    assert place.bawn("apply")["changed"] is False
    place.sh("iptables -I DOCKER-USER -s 172.16.0.0/12 -j RETURN")
    assert "BWN872" in place.rules("status")
    assert place.bawn("apply")["changed"] is True
    assert "BWN872" not in place.rules("status")
    place.sh("iptables -D FORWARD -j DOCKER-USER")
    assert "BWN870" in place.rules("status")
    place.sh("iptables -F")
    found = place.rules("verify")  # packets and all
    assert "BWN871" in found
    assert errors(found) == []
    place.sh("iptables -I FORWARD -j DOCKER-USER")
    place.bawn("apply")
    place.sh("iptables -D BAWN-WALL -m comment --comment bawn-wall:default -j DROP")
    assert "BWN873" in place.rules("status")
    place.bawn("apply")
    assert not {"BWN870", "BWN871", "BWN872", "BWN873"} & set(place.rules("status"))
    assert place.sh("iptables-save").count("-j BAWN-WALL") == 1


def test_the_second_layer_goes_where_docker_is(place: Place) -> None:
    """docker with the legacy back-end: its chain is there, and nowhere else."""
    place.sh(IPTABLES.replace("iptables ", "iptables-legacy "))
    place.bawn("apply")
    assert "BAWN-WALL" in place.sh("iptables-legacy-save")
    assert "BAWN-WALL" not in place.sh("iptables-nft-save")
    assert errors(place.rules("verify")) == []
    place.bawn("remove")
    assert "BAWN-WALL" not in everything(place)


DRIFT = {
    "nft flush ruleset": {"BWN860", "BWN861"},
    "nft delete table inet bawn_wall": {"BWN860"},
    "nft delete table bridge bawn_wall": {"BWN861"},
    "nft flush table inet bawn_wall": {"BWN863"},
    "nft flush chain inet bawn_wall box_to_net": {"BWN862"},
    "nft insert rule inet bawn_wall box_to_host accept": {"BWN862"},
    "nft add chain inet bawn_wall input '{ policy drop; }'": {"BWN862"},
    "nft add element inet bawn_wall ways '{ \"bwnx\" . 10.0.0.1 . 22 }'": {"BWN864"},
    "nft add element inet bawn_wall published '{ \"bwnx\" . 10.0.0.2 . 22 }'": {"BWN864"},
}


@pytest.mark.parametrize("act", DRIFT, ids=lambda act: act[4:36])
def test_drift_is_told(place: Place, act: str) -> None:
    """N06: by status, and by what a run asks every second; and apply mends it."""
    place.bawn("apply")
    watched = place.api(
        "import subprocess\nw = wall.Watch(where)\nassert w.check() == ()\n"
        f"subprocess.run({act!r}, shell=True, check=True)\nprint(*(f.rule for f in w.check()))"
    )
    assert set(watched.split()) == DRIFT[act]
    assert set(errors(place.rules("status", code=1))) == DRIFT[act]
    assert place.bawn("apply")["changed"] is True
    assert errors(place.rules("status")) == []


def test_follow_ends_when_the_wall_does(place: Place) -> None:
    place.bawn("apply")
    argv = ["nsenter", f"--net=/run/netns/{place.name}", BAWN, "wall", "status", "--follow"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd="/") as child:
        assert child.stdout
        for line in child.stdout:
            if line == "the wall holds\n":
                break
        place.sh("nft flush ruleset")
        rest, _ = child.communicate(timeout=10)
    assert child.returncode == 1
    assert "BWN860" in rest


def test_without_the_bridge_table_peers_talk(place: Place) -> None:
    """N09: and verify says so, by packets, not only because a table is missing."""
    place.bawn("apply")
    place.sh("nft delete table bridge bawn_wall")
    found = place.bawn("verify", code=1)["findings"]
    peers = [one["message"] for one in found if one["rule"] == "BWN882"]
    assert any("tcp 8080, udp 8080, icmp" in text and "tcp/ipv6" in text for text in peers)
    assert any("frame" in text for text in peers)
    assert {one["rule"] for one in found if one["severity"] == "error"} == {"BWN861", "BWN882"}


# (what is taken out, what then passes): a rule whose loss no packet shows would be no rule.
MUTATIONS = [
    ("chain inet bawn_wall input", {"BWN880"}),
    ("chain inet bawn_wall forward", {"BWN880"}),
    ("chain inet bawn_wall postrouting", {"BWN884"}),
    ("chain bridge bawn_wall between", {"BWN882"}),
]


@pytest.mark.parametrize(("what", "passes"), MUTATIONS, ids=lambda v: v if isinstance(v, str) else "")
def test_each_chain_is_needed(place: Place, what: str, passes: set[str]) -> None:
    place.bawn("apply")
    place.sh(f"nft flush {what}")
    found = errors(place.rules("verify", code=1))
    # Others may come with it: no run's way is opened behind a wall that does not hold, so no port is guarded.
    assert passes <= {rule for rule in found if rule.startswith("BWN88")}
    assert "BWN862" in found


def test_ipv6_is_denied_twice(place: Place) -> None:
    """N13: by the frame's type at the port, and where that is gone, by the family."""
    place.bawn("apply")
    place.sh("nft flush chain bridge bawn_wall from_port")
    assert "BWN883" not in place.rules("verify", code=1)
    assert place.bawn("status", code=1)["counters"]["host_ipv6"] > 0
    place.sh("nft flush table inet bawn_wall")
    assert "BWN883" in place.rules("verify", code=1)


# A box by hand: a namespace on a bridge with a box's name, and a listener at the gateway.
BOX = """
ip link add {bridge} type bridge; ip addr add 10.77.0.1/24 dev {bridge}; ip link set {bridge} up
ip netns add {box}; ip link add port0 type veth peer name eth0 netns {box}
ip link set port0 master {bridge} up; ip -n {box} addr add 10.77.0.2/24 dev eth0
ip -n {box} link set eth0 up; ip -n {box} route add default via 10.77.0.1
"""
TALK = """
import socket, subprocess, sys, time
def netns(name):
    import ctypes, os
    fd = os.open(f"/run/netns/{name}", os.O_RDONLY)
    assert ctypes.CDLL(None, use_errno=True).setns(fd, 0x40000000) == 0
def listen(address, port):
    s = socket.socket(); s.setsockopt(1, 2, 1); s.bind((address, port)); s.listen(); s.settimeout(2); return s
def connect(address, port, seconds=2):
    s = socket.socket(); s.settimeout(seconds); s.connect((address, port)); return s
def echo(a, b):
    b.settimeout(1.5); a.sendall(b"x")
    try: return b.recv(1) == b"x"
    except TimeoutError: return False
"""


@pytest.fixture
def box(place: Place) -> Iterator[tuple[str, str]]:
    """(bridge, namespace of the box)."""
    bridge, name = "bwn0123456789ab", f"{place.name}-box"
    place.sh(BOX.format(bridge=bridge, box=name))
    try:
        place.bawn("apply")
        yield bridge, name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def test_a_run_opens_its_way_and_closes_it(place: Place, box: tuple[str, str]) -> None:
    """N17: a connection that stands ends too, and what is closed is closed for all."""
    bridge, name = box
    said = place.api(TALK + f"""
server, other = listen("10.77.0.1", 3128), listen("10.77.0.1", 3129)
wall.open_for(where, "run1", {bridge!r}, "10.77.0.1", 3128)
print(wall.guard(where, "run1"), len(wall.Watch(where, "run1").check()))
netns({name!r})
a = connect("10.77.0.1", 3128); b, _ = server.accept()
print(echo(a, b), echo(b, a))
for port in (3129, 22):
    try: connect("10.77.0.1", port, 0.5); print("open")
    except TimeoutError: print("dropped")
netns({place.name!r})
watch = wall.Watch(where, "run1"); assert watch.check() == ()
wall.close_for(where, "run1"); wall.close_for(where, "run1")
print([f.rule for f in watch.check()])
print(echo(a, b))
""")  # fmt: skip
    assert said.splitlines() == [
        "('port0',) 0", "True True", "dropped", "dropped", "['BWN865']", "False",
    ]  # fmt: skip
    assert place.bawn("status")["ways"] == []


def test_replies_pass_and_new_flows_do_not(place: Place, box: tuple[str, str]) -> None:
    """N03: a port that a person published answers; the box opens nothing by it; others stay closed."""
    bridge, name = box
    said = place.api(TALK + f"""
host = listen("10.77.0.1", 8080)
wall.open_for(where, "run1", {bridge!r}, "10.77.0.1", 3128, published=(("10.77.0.2", 80),))
wall.guard(where, "run1")
netns({name!r}); s80, s81 = listen("10.77.0.2", 80), listen("10.77.0.2", 81); netns({place.name!r})
a = connect("10.77.0.2", 80); b, _ = s80.accept()
print(echo(a, b), echo(b, a))
try: connect("10.77.0.2", 81, 0.5); print("open")
except (TimeoutError, PermissionError): print("dropped")
netns({name!r})
for source in (0, 80):
    s = socket.socket(); s.setsockopt(1, 2, 1); s.setsockopt(1, 15, 1); s.settimeout(0.5)
    try: s.bind(("10.77.0.2", source)); s.connect(("10.77.0.1", 8080)); print("open")
    except (TimeoutError, OSError) as e: print("dropped" if isinstance(e, TimeoutError) else "in use")
""")  # fmt: skip
    assert said.splitlines()[:2] == ["True True", "dropped"]
    assert "open" not in said


def test_ways_that_are_none(place: Place, box: tuple[str, str]) -> None:
    bridge, _ = box
    for args in (
        f"{bridge!r}, 'proxy.test', 3128", f"{bridge!r}, '10.77.0.1', 0", "'docker0', '10.77.0.1', 3128",
        f"{bridge!r}, 'fd00::1', 3128", "'bwn; flush', '10.77.0.1', 3128",
    ):  # fmt: skip
        with pytest.raises(AssertionError, match="EngineError"):
            place.api(f"wall.open_for(where, 'r', {args})")
    assert place.bawn("status")["ways"] == []
    place.sh("nft flush ruleset")
    with pytest.raises(AssertionError, match="the wall does not hold"):
        place.api(f"wall.open_for(where, 'r', {bridge!r}, '10.77.0.1', 3128)")


def test_a_wall_with_a_run_behind_it_stays(place: Place, box: tuple[str, str]) -> None:
    bridge, _ = box
    place.api(f"wall.open_for(where, 'run1', {bridge!r}, '10.77.0.1', 3128)\nwall.guard(where, 'run1')")
    done = place.run(BAWN, "wall", "remove", check=False, cwd="/")
    assert done.returncode == 1
    assert "run1" in done.stderr
    place.sh("nft flush ruleset")
    assert place.bawn("apply")["changed"] is True  # with the elements of the run
    assert place.bawn("status")["ways"][0]["ports"] == ["port0"]
    assert place.bawn("remove", "--force")["removed"] is True
    assert place.sh("nft list ruleset") == ""


def test_the_policys_networks_are_denied_first(place: Place, tmp_path: Any) -> None:
    """N18: one inside another, twice the same: no fault. A proxy inside one is refused."""
    policy = tmp_path / "bawn.toml"
    policy.write_text(
        'version = 1\n[wall]\ncontrol_plane = ["203.0.113.0/24", "203.0.113.7/32"]\n'
        'deny = ["203.0.113.0/24", "10.0.0.0/8", "2001:db8::/32"]\n[profile.default]\n'
    )
    place.bawn("apply", "--policy", str(policy))
    place.bawn("verify", "--policy", str(policy))
    assert place.sh("nft list ruleset").count("{ 10.0.0.0/8, 203.0.113.0/24 }") == 3
    with pytest.raises(AssertionError, match=r"10\.77\.0\.1 lies in 10\.0\.0\.0/8"):
        place.api("wall.open_for(where, 'r', 'bwnx', '10.77.0.1', 3128)")
    assert place.rules("status", code=1)[0] == "BWN866"  # the default policy has no such networks
    assert place.bawn("apply", "--recorded")["changed"] is False


def test_a_foreign_drop_is_named_and_shown(place: Place) -> None:
    """A drop ends everything: the wall stands, and the way is closed all the same."""
    place.nft("table inet other { chain in { type filter hook input priority -300; policy drop; }; }")
    place.bawn("apply")
    found = place.rules("verify", code=1)
    assert "BWN876" in found
    assert "BWN881" in found
    assert not {"BWN880", "BWN882", "BWN883", "BWN884"} & set(found)


def test_a_foreign_accept_changes_nothing(place: Place) -> None:
    """nft(8): an accept ends its own base chain alone."""
    chains = " ".join(
        f"chain {hook} {{ type filter hook {hook} priority -400; policy accept; accept; }};"
        for hook in ("input", "forward", "postrouting")
    )
    place.nft(f"table inet other {{ {chains} }}")
    place.bawn("apply")
    assert errors(place.rules("verify")) == []


def test_what_a_killed_verify_left_goes_with_the_next(place: Place) -> None:
    place.bawn("apply")
    place.sh("ip link add bwnv3ffffe type bridge; ip link add bv23ffffe type bridge")
    way = "wall.Way('verify3ffffe', 'bwnv3ffffe', '198.18.0.1', 3128)"
    place.api(f"wall._write(where + '/ways/verify3ffffe.json', {way})")
    assert "BWN865" in place.rules("status", code=1)
    place.bawn("verify", code=1)
    assert place.sh("ip -o link").count("\n") == 1
    place.bawn("verify")
