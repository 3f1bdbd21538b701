"""What an address is: public, or special and why. An address inside an address is judged too.

`Forbidden` are the caller's own networks: the control plane, `wall.deny`, the host's addresses.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from bawn.egress.ranges import CARRIES, OTHER_V6, V4, V6, Range
from bawn.typed import NamedTuple

_Address = IPv4Address | IPv6Address
_LOW32 = 0xFFFFFFFF
_ISATAP = (0x00005EFE, 0x02005EFE)  # RFC 5214 6.1: the upper half of the interface identifier
_NO_RANGE = Range("", "", "")


class Verdict(NamedTuple):
    """What became of one text. `address` is what may be dialled, "" where the text is none."""

    address: str
    problem: str = ""  # "" for a public address
    own: bool = False  # one of the caller's networks, not one of the table

    @property
    def public(self) -> bool:
        return not self.problem


class Forbidden(NamedTuple):
    """Networks of the caller, each with what it is: (family, first, last, what)."""

    ranges: tuple[tuple[int, int, int, str], ...] = ()

    @classmethod
    def of(cls, networks: Iterable[tuple[str, str]]) -> "Forbidden":
        """From (network or address, what it is). Raises ValueError: a typing error must not open."""
        found = []
        for text, what in networks:
            net = ip_network(text, strict=False)
            if isinstance(net, IPv6Network) and net.network_address.ipv4_mapped and net.prefixlen >= 96:
                net = IPv4Network((int(net.network_address) & _LOW32, net.prefixlen - 96))
            found.append((net.version, int(net[0]), int(net[-1]), what))
        return cls(tuple(found))

    def holds(self, address: _Address) -> str:
        """What it is, or ""."""
        number = int(address)
        hits = (what for v, low, high, what in self.ranges if v == address.version and low <= number <= high)
        return next(hits, "")


NOTHING = Forbidden()


def classify(text: str, forbidden: Forbidden = NOTHING) -> Verdict:
    """Judges one address as DNS or a client wrote it. A text that does not parse is not public."""
    address = _parse(text)
    if address is None:
        return Verdict("", "no address")
    layers = [address]
    while isinstance(layers[-1], IPv6Address) and (inner := unwrap(layers[-1])) is not None:
        layers.append(inner)
    shown = " holding ".join(map(str, layers))
    for layer in layers:
        own = forbidden.holds(layer)
        if own:
            return Verdict(str(address), f"{shown}: {own}", own=True)
    # The innermost says most: 127.0.0.1 in 6to4 is loopback first of all.
    found = next((one for layer in reversed(layers) if (one := _special(layer)).what), _NO_RANGE)
    if found.what:
        return Verdict(str(address), f"{shown}: {found.what} ({found.source})")
    mapped = isinstance(address, IPv6Address) and address.ipv4_mapped
    return Verdict(str(mapped or address))


def unwrap(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address carries, if its form says that it carries one."""
    number = int(address)
    kind = _longest(address)
    if kind.what == "6to4":
        return IPv4Address(number >> 80 & _LOW32)
    if kind.what == "Teredo":  # the client's, each bit inverted (RFC 4380 4)
        return IPv4Address(number & _LOW32 ^ _LOW32)
    if kind.what == "local NAT64":
        return _nat64_local(number)
    isatap = number >> 32 & _LOW32 in _ISATAP
    return IPv4Address(number & _LOW32) if kind.kind == "wrapper" or isatap else None


def _nat64_local(number: int) -> IPv4Address:
    """RFC 6052 2.2: a /96 has the address at its end, a /48 has it around bits 64 to 71, which are 0."""
    low = number & (1 << 80) - 1
    end = low & _LOW32
    return IPv4Address(end if end else (low >> 64 << 16 | low >> 40 & 0xFFFF) & _LOW32)


def _parse(text: str) -> _Address | None:
    """A zone ("%eth0") chooses an interface: not an address that may be dialled."""
    try:
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None


def _special(address: _Address) -> Range:
    """The range that refuses it; one without `what` for a public address."""
    found = _longest(address)
    if found.what in CARRIES:  # the inner address was asked already
        return _NO_RANGE
    if not found.what and address.version == 6 and int(address) >> 125 != 1:
        return OTHER_V6
    return found


def _longest(address: _Address) -> Range:
    number = int(address)
    rows = _ROWS[address.version]
    return next((row for shift, base, row in rows if number >> shift == base), _NO_RANGE)


def _rows(table: tuple[Range, ...]) -> list[tuple[int, int, Range]]:
    """(shift, network >> shift, range), longest prefix first."""
    nets = sorted(((ip_network(row.network), row) for row in table), key=lambda pair: -pair[0].prefixlen)
    shifts = [(net.max_prefixlen - net.prefixlen, net, row) for net, row in nets]
    return [(shift, int(net[0]) >> shift, row) for shift, net, row in shifts]


_ROWS = {4: _rows(V4), 6: _rows(V6)}
