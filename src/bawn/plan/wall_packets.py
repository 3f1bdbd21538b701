"""The packets that `bawn wall verify` sends, where to, and what their fate means. Pure.

    a, b      two boxes on a throw-away bridge that is named like a box's: behind the wall
    c, d      the same on a bridge that is not: the control, which shows that a way could be gone at all
    n         a neighbour behind this machine, to be routed to
    here      this machine's own addresses on those bridges

Addresses are of the range for benchmarks (RFC 2544) and of a unique local prefix (RFC 4193) made up for
the occasion; each stands on a device that verify itself has made, so nothing leaves the machine.
"""

from collections.abc import Sequence

from bawn.plan.model import Finding
from bawn.plan.wall_rules import finding
from bawn.typed import NamedTuple

SERVICE, WAY = 8080, 3128  # ports: what must not be reached, and the proxy's
V6 = "fd{:02x}:{:04x}:{:04x}"
LINK_LOCAL = "fe80::{}"


class Net(NamedTuple):
    """One /28 and one /64: the machine's own address is .1, the others follow."""

    v4: str  # "198.18.7." and the number of its first address
    first: int
    v6: str  # "fd01:2:3:1"

    def four(self, number: int) -> str:
        return f"{self.v4}{self.first + number}"

    def six(self, number: int) -> str:
        return f"{self.v6}::{number}"


class World(NamedTuple):
    box: Net
    control: Net
    neighbour: Net
    ipv6: bool  # False where this machine has none


class Target(NamedTuple):
    """`rule` is the finding of its being reached (or, `must`, of its not being)."""

    proto: str
    address: str
    port: int
    at: str  # who answers: "here" (this machine), "neighbour", "peer", "box"
    what: str
    rule: str
    must: bool = False


def world(number: int, prefix: str, ipv6: bool) -> World:
    """`number`: 0 to 511, which /24 of 198.18.0.0/15; `prefix` a /48 of IPv6."""
    v4 = f"198.{18 + number // 256}.{number % 256}."
    box, control, neighbour = (Net(v4, 16 * n, f"{prefix}:{n + 1}") for n in range(3))
    return World(box, control, neighbour, ipv6)


def from_box(world: World, own: Net, other: Net, *, way: bool) -> tuple[Target, ...]:
    """What a box on the net `own` asks for. `other` is the net of the other bridge; `way`: it has one."""
    rows = (
        [Target("tcp", own.four(1), WAY, "here", "the proxy's address and port", "BWN881", True)]
        if way
        else []
    )
    elsewhere = "this machine's address on another interface"
    here = (("the gateway", own), (elsewhere, other), (elsewhere, world.neighbour))
    for what, net in here:
        rows += _four(net.four(1), "here", what, "BWN880")
    rows += _four(world.neighbour.four(2), "neighbour", "a routed neighbour", "BWN880")
    rows += _four(own.four(3), "peer", "a peer on the bridge", "BWN882")
    rows.append(Target("frame", "eth0", 0, "peer", "a peer, by a frame of no IP", "BWN882"))
    if world.ipv6:
        for what, net in here:
            rows += _six(net.six(1), "here", what, "BWN883")
        rows += _six(LINK_LOCAL.format(1) + "%eth0", "here", "the gateway, link-local", "BWN883")
        rows += _six(world.neighbour.six(2), "neighbour", "a routed neighbour", "BWN883")
        rows += _six(own.six(3), "peer", "a peer on the bridge", "BWN882")
        rows += _six(LINK_LOCAL.format(3) + "%eth0", "peer", "a peer, link-local", "BWN882")
    return tuple(rows)


def into_box(world: World, own: Net) -> tuple[Target, ...]:
    """What this machine asks of a box: nobody has published anything."""
    rows = _four(own.four(2), "box", "a box, from this machine", "BWN884")
    rows += _six(own.six(2), "box", "a box, from this machine", "BWN884") if world.ipv6 else []
    return tuple(rows)


def _four(address: str, at: str, what: str, rule: str) -> list[Target]:
    protos = (("tcp", SERVICE), ("udp", SERVICE), ("icmp", 0), ("raw", 0))
    return [Target(proto, address, port, at, what, rule) for proto, port in protos]


def _six(address: str, at: str, what: str, rule: str) -> list[Target]:
    protos = (("tcp", SERVICE), ("udp", SERVICE), ("icmp", 0))
    return [Target(proto, address, port, at, what, rule) for proto, port in protos]


def judge(targets: Sequence[Target], reached: Sequence[bool], control: Sequence[bool]) -> tuple[Finding, ...]:
    """`reached`: by the box behind the wall; `control`: by its twin without one, target for target.

    One finding for all protocols by which the same somebody was reached.
    """
    wrong: dict[tuple[str, str], list[Target]] = {}
    unproved: dict[str, list[str]] = {}
    for target, box, twin in zip(targets, reached, control, strict=True):
        if box != target.must:
            wrong.setdefault((target.rule, target.what), []).append(target)
        elif not target.must and not twin:
            unproved.setdefault(target.what, []).append(_proto(target))
    found = []
    for (rule, what), those in wrong.items():
        how = "no answer by" if those[0].must else "reached by"
        place = ", ".join(dict.fromkeys(t.address for t in those))
        found.append(finding(rule, place, f"{what}: {how} {', '.join(dict.fromkeys(map(_proto, those)))}"))
    found += [
        finding("BWN886", "control", f"without the wall, no way to {what} by {', '.join(protos)} either")
        for what, protos in unproved.items()
    ]
    return tuple(found)


def _proto(target: Target) -> str:
    port = f" {target.port}" if target.port else ""
    return f"{target.proto}{'/ipv6' if ':' in target.address else ''}{port}"
