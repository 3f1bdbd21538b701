"""The second layer: seed 001's rules in docker's own chain, corrected, as text for iptables-restore. Pure.

DOCKER-USER sees only what is routed, so this is no wall; it holds what it can should the nftables tables
be gone. What seed 001 lacked: only packets of boxes (`-i bwn+`) are looked at, and of those not replies,
so docker's own 172.16/12 goes on working; carrier-grade NAT and the other clouds' metadata are named;
after the names everything is dropped; and ip6tables has the same.

All of it lies in one chain of bawn's own, filled at once (`:BAWN-WALL` empties it in the same
transaction), and one jump, marked by a comment: removing takes exactly these.
"""

from bawn.plan.wall import PREFIX, Wall
from bawn.typed import NamedTuple

CHAIN = "BAWN-WALL"
DOCKER_USER = "DOCKER-USER"
MARK = "bawn-wall"
V4, V6 = "ip", "ip6"

JUMP = f"-i {PREFIX}+ -m comment --comment {MARK} -j {CHAIN}"
_REPLIES = (
    f"-m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -m comment --comment {MARK}:reply -j RETURN"
)
# Named for their counters alone: what follows drops them all the same.
_NAMED = (
    ("169.254.0.0/16", "link-local-metadata"),  # RFC 3927
    ("10.0.0.0/8", "private"),  # RFC 1918
    ("172.16.0.0/12", "private"),
    ("192.168.0.0/16", "private"),
    ("100.64.0.0/10", "cgnat"),  # RFC 6598; Alibaba Cloud's metadata too
    ("168.63.129.16/32", "azure-wireserver"),
    ("192.0.0.192/32", "oracle-classic-metadata"),
)


class Place(NamedTuple):
    """Where the layer goes: a back-end's table of one family, and the chain that jumps to it."""

    backend: str  # "nft" or "legacy"
    family: str  # V4 or V6
    anchor: str
    jumps: int = 0  # how many jumps to CHAIN the anchor holds now


def chain(wall: Wall, family: str) -> tuple[str, ...]:
    """The rules of CHAIN, without their `-A CHAIN`."""
    named = (*_NAMED, *((net, "wall") for net in wall.never)) if family == V4 else ()
    drops = (f"-d {net} -m comment --comment {MARK}:{what} -j DROP" for net, what in named)
    replies = (_REPLIES,) if family == V4 else ()
    return (*replies, *drops, f"-m comment --comment {MARK}:default -j DROP")


def restore(wall: Wall, place: Place) -> str:
    """For `iptables-restore --noflush`: the chain anew, and one jump to it as the anchor's first rule."""
    rules = [f"-A {CHAIN} {rule}" for rule in chain(wall, place.family)]
    old = [f"-D {place.anchor} {JUMP}"] * place.jumps
    return _text([f":{CHAIN} - [0:0]", *rules, *old, f"-I {place.anchor} 1 {JUMP}"])


def removal(place: Place) -> str:
    """For `iptables-restore --noflush`: takes the jumps and the chain away, and nothing else."""
    return _text([*[f"-D {place.anchor} {JUMP}"] * place.jumps, f"-F {CHAIN}", f"-X {CHAIN}"])


def alone(wall: Wall, place: Place) -> str:
    """The same for an empty table: what a back-end makes of it, to compare with."""
    head = [] if place.anchor == "FORWARD" else [f":{place.anchor} - [0:0]"]
    lines = restore(wall, place._replace(jumps=0)).splitlines()
    return "\n".join([lines[0], *head, *lines[1:], ""])


def _text(lines: list[str]) -> str:
    return "\n".join(["*filter", *lines, "COMMIT", ""])
