"""The wall of bridge mode as text: two nftables tables of bawn's own, which deny first. Pure.

    table inet bawn_wall     routed packets. Out of a box: tcp to the proxy's address and port on its own
                             bridge, and nothing else, whatever protocol, whatever family. Into a box:
                             replies, and what a person published.
    table bridge bawn_wall   frames. A box's port speaks IPv4 and the ARP that finds its gateway, to the
                             bridge itself; never to another port.

A box is known by its bridge: one docker network per run, its bridge named `bwn...`. So the tables stand
before any box does and after all of them; a run only adds its own elements to the sets. Nothing here
accepts "established": each packet of a box is asked again, so that what is closed ends open connections
too. Both tables are replaced in one transaction (`table`, `delete table`, `table {...}`): there is no
moment without them.
"""

from collections.abc import Iterable
from ipaddress import IPv4Network, collapse_addresses, ip_address, ip_network

from bawn.errors import EngineError
from bawn.policy.model import Wall as Denied
from bawn.typed import NamedTuple

PREFIX = "bwn"
TABLE = "bawn_wall"
NAME_MAX = 15  # bytes of an interface's name (IFNAMSIZ less its end)
# After conntrack (-200), whose direction is asked; before mangle (-150), NAT and every filter (0): what
# drops here is seen by nobody else, and an accept here is only ours (nft(8): others still decide).
PRIORITY = -160
BRIDGE_PRIORITY = -310  # before ebtables' NAT (-300) and br_netfilter (0)
FAMILIES = ("inet", "bridge")
SETS = {"ways": "inet", "published": "inet", "ports": "bridge", "gates": "bridge"}


class Wall(NamedTuple):
    """All that the text depends on."""

    never: tuple[str, ...] = ()  # IPv4 networks that even a way may not lead to (of IPv6 nothing passes)
    ibrname: bool = False  # this kernel can match a bridge's name in its own frames (nft_meta_bridge)
    prefix: str = PREFIX


class Way(NamedTuple):
    """The one way out of one run, and what its person published."""

    run: str
    bridge: str
    address: str  # the proxy's, an IPv4 literal: the gateway address of the run's network
    port: int
    ports: tuple[str, ...] = ()  # the bridge's ports, known once the container has started
    published: tuple[tuple[str, int], ...] = ()  # (the box's address, its tcp port)


class Drop(NamedTuple):
    """One rule that drops, by the name of its counter."""

    counter: str
    what: str


DROPS = (
    Drop("host_never", "to this machine, at an address of the control plane or wall.deny"),
    Drop("host_ipv6", "IPv6 to this machine, link-local too"),
    Drop("host_tcp", "TCP to this machine, not to the proxy"),
    Drop("host_udp", "UDP to this machine"),
    Drop("host_icmp", "ICMP to this machine"),
    Drop("host_other", "any other protocol to this machine"),
    Drop("net_never", "routed, to the control plane or wall.deny"),
    Drop("net_ipv6", "IPv6, routed"),
    Drop("net_tcp", "TCP, routed"),
    Drop("net_udp", "UDP, routed (QUIC, DNS)"),
    Drop("net_icmp", "ICMP, routed"),
    Drop("net_other", "any other protocol, routed"),
    Drop("box_never", "into a box, from the control plane or wall.deny"),
    Drop("box_ipv6", "IPv6 into a box"),
    Drop("box_new", "into a box, neither a reply nor published"),
    Drop("frame_arp", "ARP for anybody but the gateway"),
    Drop("frame_other", "frames that are neither IPv4 nor ARP"),
    Drop("peer", "frames from a box's port to another, or from another to it"),
)
_FRAMES = ("frame_arp", "frame_other", "peer")


def never(denied: Denied) -> tuple[str, ...]:
    """The IPv4 of the policy's wall table. One network inside another is no fault: nft refuses that."""
    nets = (ip_network(text, strict=False) for text in (*denied.control_plane, *denied.deny))
    return tuple(map(str, collapse_addresses(n for n in nets if isinstance(n, IPv4Network))))


def bridge_name(run_id: str) -> str:
    """The bridge of a run: the end of its id, which holds all the chance and 4 hours of its time."""
    return f"{PREFIX}{run_id[-(NAME_MAX - len(PREFIX)) :]}"


def check_way(wall: Wall, way: Way) -> None:
    """Raises EngineError for a way that the tables cannot hold, or that would not be one."""
    place = f"the way of run {way.run}"
    if not _is_name(way.bridge) or not way.bridge.startswith(wall.prefix):
        raise EngineError(
            f"{place}: {way.bridge!r} is not the bridge of a box: the wall guards {wall.prefix}* alone",
            f"make the network with com.docker.network.bridge.name={bridge_name(way.run)}",
        )
    for port in way.ports:
        if not _is_name(port):
            raise EngineError(f"{place}: {port!r} is not the name of an interface")
    if not way.run.isalnum() or not way.run.isascii():
        raise EngineError(f"{place}: a run's id is letters and digits")
    for what, address, number in (("proxy", way.address, way.port), *(("box", *p) for p in way.published)):
        _check_end(wall, f"{place}: the {what}", address, number)


def _check_end(wall: Wall, place: str, address: str, port: int) -> None:
    try:
        parsed = ip_address(address)
    except ValueError:
        raise EngineError(f"{place}'s address {address!r} is no IP literal", "name no host here") from None
    if parsed.version != 4:
        raise EngineError(f"{place}'s address {address} is IPv6, of which the wall lets nothing pass")
    if not 1 <= port <= 65535:
        raise EngineError(f"{place}'s port {port} is not from 1 to 65535")
    denied = next((net for net in wall.never if parsed in ip_network(net)), "")
    if denied:
        raise EngineError(
            f"{place}'s address {address} lies in {denied}, which the policy's wall denies",
            "give docker other address pools (default-address-pools), or take the network out of wall",
        )


def _is_name(text: str) -> bool:
    return (
        0 < len(text) <= NAME_MAX and text.isascii() and all(char.isalnum() or char in "_.-" for char in text)
    )


def ruleset(wall: Wall, ways: Iterable[Way] = ()) -> str:
    """What `nft -f` is given. Loading it again changes nothing but the counters."""
    given = tuple(ways)
    for way in given:
        check_way(wall, way)
    lines = ["# Written by `bawn wall apply`; removed by `bawn wall remove`."]
    for family in FAMILIES:
        lines += [f"table {family} {TABLE}", f"delete table {family} {TABLE}"]
    lines += [f"table inet {TABLE} {{", *_counters(frames=False), *_sets("inet", given), *_inet(wall), "}"]
    lines += [f"table bridge {TABLE} {{", *_counters(frames=True), *_sets("bridge", given), *_bridge(wall)]
    return "\n".join([*lines, "}", ""])


def removal() -> str:
    """Both tables go, at once; one that is not there is no fault."""
    return "".join(f"table {f} {TABLE}\ndelete table {f} {TABLE}\n" for f in FAMILIES)


def _counters(*, frames: bool) -> list[str]:
    return [f"\tcounter {d.counter} {{ }}" for d in DROPS if (d.counter in _FRAMES) == frames]


_TYPES = {
    "ways": "ifname . ipv4_addr . inet_service",  # the box's bridge, the proxy's address and port
    "published": "ifname . ipv4_addr . inet_service",  # the box's bridge, its address and port
    "ports": "ifname",  # ports of boxes' bridges
    "gates": "ifname . ipv4_addr",  # such a port, the gateway that it may ask for by ARP
}


def elements(way: Way) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The elements of one run, by set: each a tuple of the key's parts."""
    return {
        "ways": ((way.bridge, way.address, str(way.port)),),
        "published": tuple((way.bridge, address, str(port)) for address, port in way.published),
        "ports": tuple((port,) for port in way.ports),
        "gates": tuple((port, way.address) for port in way.ports),
    }


def _sets(family: str, ways: tuple[Way, ...]) -> list[str]:
    lines = []
    for name in (n for n, of in SETS.items() if of == family):
        found = sorted({element for way in ways for element in elements(way)[name]})
        lines += [f"\tset {name} {{", f"\t\ttype {_TYPES[name]}"]
        lines += [f"\t\telements = {{ {', '.join(map(_element, found))} }}"] if found else []
        lines.append("\t}")
    return lines


def _element(parts: tuple[str, ...]) -> str:
    name, *rest = parts
    return " . ".join([f'"{name}"', *rest])


def change(verb: str, way: Way, only: tuple[str, ...] = tuple(SETS)) -> str:
    """One transaction that adds (or deletes) the elements of a run; `verb` is nft's."""
    lines = []
    for name, found in elements(way).items():
        if found and name in only:
            listed = ", ".join(map(_element, found))
            lines.append(f"{verb} element {SETS[name]} {TABLE} {name} {{ {listed} }}\n")
    return "".join(lines)


def _inet(wall: Wall) -> list[str]:
    box = f'"{wall.prefix}*"'
    base = "\t\ttype filter hook {} priority {}; policy accept;"
    return [
        "\tchain input {",
        base.format("input", PRIORITY),
        f"\t\tiifname {box} jump box_to_host",
        "\t}",
        "\tchain forward {",
        base.format("forward", PRIORITY),
        f"\t\tiifname {box} jump box_to_net",
        "\t}",
        # Not output: a packet that NAT sends elsewhere has its last interface here only.
        "\tchain postrouting {",
        base.format("postrouting", PRIORITY),
        f"\t\toifname {box} jump into_box",
        "\t}",
        *_chain("box_to_host", "host", "daddr", wall, "iifname . ip daddr . tcp dport @ways accept"),
        *_chain("box_to_net", "net", "daddr", wall, ""),
        *_chain("into_box", "box", "saddr", wall, "oifname . ip daddr . tcp dport @published accept"),
    ]


_REPLY = "ct direction reply ct state established,related accept"
_BY_PROTOCOL = (("tcp", "meta l4proto tcp "), ("udp", "meta l4proto udp "), ("icmp", "meta l4proto icmp "))


def _chain(name: str, prefix: str, end: str, wall: Wall, opened: str) -> list[str]:
    """Deny first, then replies and the one thing that is open, then all the rest by protocol.

    A reply is a packet against the direction that its connection was opened in: one that a box opened
    is never one, however long it stands.
    """
    rules = [f"meta nfproto ipv6 {_drop(f'{prefix}_ipv6')}"]
    if wall.never:
        rules.append(f"ip {end} {{ {', '.join(wall.never)} }} {_drop(f'{prefix}_never')}")
    rules += [_REPLY, *([opened] if opened else [])]
    if prefix == "box":
        rules.append(_drop("box_new"))
    else:
        rules += [f"{match}{_drop(f'{prefix}_{what}')}" for what, match in _BY_PROTOCOL]
        rules.append(_drop(f"{prefix}_other"))
    return [f"\tchain {name} {{", *(f"\t\t{rule}" for rule in rules), "\t}"]


def _drop(counter: str) -> str:
    return f"counter name {counter} drop"


def _bridge(wall: Wall) -> list[str]:
    named = [f'meta {key} "{wall.prefix}*" {_drop("peer")}' for key in ("ibrname", "obrname")]
    return [
        "\tchain from_port {",
        f"\t\ttype filter hook prerouting priority {BRIDGE_PRIORITY}; policy accept;",
        "\t\tiifname != @ports accept",
        "\t\tiifname . arp daddr ip @gates accept",
        f"\t\tether type arp {_drop('frame_arp')}",
        f"\t\tether type != ip {_drop('frame_other')}",
        "\t}",
        "\tchain between {",
        f"\t\ttype filter hook forward priority {BRIDGE_PRIORITY}; policy accept;",
        *(f"\t\t{rule}" for rule in (named if wall.ibrname else [])),
        f"\t\tiifname @ports {_drop('peer')}",
        f"\t\toifname @ports {_drop('peer')}",
        "\t}",
    ]
