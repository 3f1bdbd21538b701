"""The lab's world as data: who lives there, at which addresses, under which names. Pure.

The addresses are of the very kinds that a box must or must not reach, so that a filter is tried on the
real thing; they exist only in a namespace without an uplink. The public ones are those that the name
example.com had for years, so that no classifier takes them for special.
"""

from bawn.typed import Literal, NamedTuple

Kind = Literal["forbidden", "stranger", "provider", "resolver"]


class Host(NamedTuple):
    """`forbidden` hosts no policy can open; a `stranger` is merely not listed."""

    name: str
    kind: Kind
    addresses: tuple[str, ...]


HOSTS = (
    Host("metadata", "forbidden", ("169.254.169.254", "fd00:ec2::254")),
    Host("private-10", "forbidden", ("10.66.0.10", "fd66::10")),
    Host("private-172", "forbidden", ("172.31.66.10",)),
    Host("private-192", "forbidden", ("192.168.166.10",)),
    Host("cgnat", "forbidden", ("100.64.66.10",)),  # RFC 6598
    Host("control-plane", "forbidden", ("203.0.113.66", "2001:db8:66::66")),
    Host("stranger", "stranger", ("93.184.216.66", "2606:2800:220:66::66")),
    Host("provider", "provider", ("93.184.216.77", "2606:2800:220:66::77")),
    Host("resolver", "resolver", ("93.184.216.53", "2606:2800:220:66::53")),
)
# What joins the machine under test to this world (RFC 5737; RFC 4193).
LINK = {"host": ("198.51.100.2/30", "fd66:ffff::2/64"), "world": ("198.51.100.1/30", "fd66:ffff::1/64")}
TCP_PORTS = (22, 80, 443, 5432, 8080)  # 443 speaks TLS; the others answer HTTP
UDP_PORTS = (123, 443)  # they send back what they get
DNS_PORT = 53  # of the resolver alone

# name -> the answers to successive questions, the last one for good. A label "*" stands for any one label.
ZONE: dict[str, tuple[tuple[str, ...], ...]] = {
    "api.provider.test": (("93.184.216.77", "2606:2800:220:66::77"),),
    "*.wild.provider.test": (("93.184.216.77",),),
    # Where the agents' own clients go when nobody tells them otherwise: scripted (provider.py).
    "api.anthropic.com": (("93.184.216.77",),),
    "api.openai.com": (("93.184.216.77",),),
    "stranger.test": (("93.184.216.66", "2606:2800:220:66::66"),),
    "private.test": (("10.66.0.10",),),
    "metadata.test": (("169.254.169.254", "fd00:ec2::254"),),
    "loopback.test": (("127.0.0.1", "::1"),),
    "mapped.test": (("::ffff:10.66.0.10",),),
    "nat64.test": (("64:ff9b::a9fe:a9fe",),),  # RFC 6052 of 169.254.169.254
    "mixed.test": (("93.184.216.77", "10.66.0.10"),),
    "rebind.test": (("93.184.216.77",), ("169.254.169.254",)),
    "empty.test": ((),),
}
TLS_NAMES = (
    "api.provider.test", "*.wild.provider.test", "stranger.test", "api.anthropic.com", "api.openai.com",
)  # fmt: skip


def host_at(address: str) -> str:
    """The name of the host at `address`. Raises StopIteration for one that is not of this world."""
    return next(host.name for host in HOSTS if address in host.addresses)


def zone_entry(name: str) -> str:
    """The key of ZONE that answers `name` (lower case, no final dot), or ""."""
    wild = f"*.{name.partition('.')[2]}"
    return next((key for key in (name, wild) if key in ZONE), "")
