"""The ranges of addresses that no name may lead to, each with the document that makes it special.

IANA's special-purpose registries (RFC 6890), and the places where clouds answer their own machines.
The longest range that holds an address names it. Of IPv6 only 2000::/3 is given out as global
unicast (RFC 4291 2.4, IANA): all else is refused too.
"""

from bawn.typed import Literal, NamedTuple

Kind = Literal["special", "metadata", "wrapper"]


class Range(NamedTuple):
    """`wrapper` ranges hold an IPv4 address (`addresses.unwrap`), which is judged as well."""

    network: str
    what: str
    source: str
    kind: Kind = "special"


V4: tuple[Range, ...] = (
    Range("0.0.0.0/8", "this host on this network", "RFC 1122 3.2.1.3"),
    Range("10.0.0.0/8", "private", "RFC 1918"),
    Range("100.64.0.0/10", "carrier-grade NAT", "RFC 6598"),
    Range("127.0.0.0/8", "loopback", "RFC 1122 3.2.1.3"),
    Range("169.254.0.0/16", "link-local", "RFC 3927"),
    Range("172.16.0.0/12", "private", "RFC 1918"),
    Range("192.0.0.0/24", "IETF protocol assignments", "RFC 6890"),
    Range("192.0.2.0/24", "documentation", "RFC 5737"),
    Range("192.31.196.0/24", "AS112", "RFC 7535"),
    Range("192.52.193.0/24", "multicast tunnelling", "RFC 7450"),
    Range("192.88.99.0/24", "6to4 relays", "RFC 7526"),
    Range("192.168.0.0/16", "private", "RFC 1918"),
    Range("192.175.48.0/24", "AS112", "RFC 7534"),
    Range("198.18.0.0/15", "benchmarking", "RFC 2544"),
    Range("198.51.100.0/24", "documentation", "RFC 5737"),
    Range("203.0.113.0/24", "documentation", "RFC 5737"),
    Range("224.0.0.0/4", "multicast", "RFC 5771"),
    Range("240.0.0.0/4", "reserved", "RFC 1112 4"),
    Range("255.255.255.255/32", "broadcast", "RFC 919 7"),
    Range("100.100.100.200/32", "cloud metadata", "Alibaba Cloud ECS", "metadata"),
    Range("168.63.129.16/32", "cloud metadata", "Azure WireServer", "metadata"),
    Range("169.254.0.23/32", "cloud metadata", "Tencent Cloud CVM", "metadata"),
    Range("169.254.42.42/32", "cloud metadata", "Scaleway", "metadata"),
    Range("169.254.169.253/32", "cloud resolver", "Amazon VPC", "metadata"),
    Range("169.254.169.254/32", "cloud metadata", "Amazon EC2, Google, Azure, Oracle, others", "metadata"),
    Range("169.254.170.2/32", "cloud credentials", "Amazon ECS", "metadata"),
    Range("169.254.170.23/32", "cloud credentials", "Amazon EKS Pod Identity", "metadata"),
    Range("192.0.0.192/32", "cloud metadata", "Oracle Cloud Classic", "metadata"),
)

V6: tuple[Range, ...] = (
    Range("::/128", "unspecified", "RFC 4291 2.5.2"),
    Range("::1/128", "loopback", "RFC 4291 2.5.3"),
    Range("::/96", "IPv4-compatible", "RFC 4291 2.5.5.1", "wrapper"),
    Range("::ffff:0:0/96", "IPv4-mapped", "RFC 4291 2.5.5.2", "wrapper"),
    Range("::ffff:0:0:0/96", "IPv4-translated", "RFC 2765 2.1", "wrapper"),
    Range("64:ff9b::/96", "NAT64", "RFC 6052 2.1", "wrapper"),
    Range("64:ff9b:1::/48", "local NAT64", "RFC 8215", "wrapper"),
    Range("100::/64", "discard", "RFC 6666"),
    Range("100:0:0:1::/64", "dummy", "RFC 9780"),
    Range("2001::/23", "IETF protocol assignments", "RFC 2928"),
    Range("2001::/32", "Teredo", "RFC 4380 4", "wrapper"),
    Range("2001:2::/48", "benchmarking", "RFC 5180"),
    Range("2001:10::/28", "ORCHID", "RFC 4843"),
    Range("2001:20::/28", "ORCHIDv2", "RFC 7343"),
    Range("2001:db8::/32", "documentation", "RFC 3849"),
    Range("2002::/16", "6to4", "RFC 3056 2", "wrapper"),
    Range("2620:4f:8000::/48", "AS112", "RFC 7534"),
    Range("3ffe::/16", "6bone", "RFC 3701"),
    Range("3fff::/20", "documentation", "RFC 9637"),
    Range("5f00::/16", "segment routing", "RFC 9602"),
    Range("fc00::/7", "unique local", "RFC 4193"),
    Range("fe80::/10", "link-local", "RFC 4291 2.5.6"),
    Range("fec0::/10", "site-local", "RFC 3879"),
    Range("ff00::/8", "multicast", "RFC 4291 2.7"),
    Range("fd00:42::42/128", "cloud metadata", "Scaleway", "metadata"),
    Range("fd00:ec2::23/128", "cloud credentials", "Amazon EKS Pod Identity", "metadata"),
    Range("fd00:ec2::253/128", "cloud resolver", "Amazon VPC", "metadata"),
    Range("fd00:ec2::254/128", "cloud metadata", "Amazon EC2", "metadata"),
    Range("fd20:ce::254/128", "cloud metadata", "Google Compute Engine", "metadata"),
    Range("fe80::a9fe:a9fe/128", "cloud metadata", "OpenStack", "metadata"),
)
# The wrappers that carry traffic today; of these a public inner address passes.
CARRIES = ("IPv4-mapped", "NAT64")
OTHER_V6 = Range("::/0", "not given out as global unicast", "RFC 4291 2.4")
