"""Names of hosts: the grammar of an `allow` line, and the one normaliser of policy and traffic. Pure.

A line is `name`, `name:port`, `*.name:port` or `@group`. Whole labels only. What would match
everything, or nothing, or an address, is a load error.
"""

import re

from bawn.errors import PolicyError
from bawn.typed import NamedTuple

DEFAULT_PORT = 443
GROUPS = ("@anthropic", "@openai", "@github", "@npm", "@pypi", "@debian")
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"  # RFC 1123 2.1, RFC 8553 for "_"
_NUMERIC = r"0x[0-9a-f]*|[0-9]+"  # what inet_aton(3) reads as a part of an address
_DOTS = "[\u3002\uff0e\uff61]"  # RFC 3490 3.1: read as dots
# IDNA 2003 and 2008 make different names of these (UTS 46, section 7), and so do two programs.
_AMBIGUOUS = frozenset("\u00df\u1e9e\u03c2\u200c\u200d")
_LONGEST = 1024  # characters; more is not converted at all (CVE-2022-45061)
_ADDRESS = "an IP address: only names can be allowed"
_NO_NAME = "no host name"
_NO_NUMBER = "neither a name nor an address: its last part is a number"  # URL Standard, "ends in a number"
_HERE = "this machine itself: every service on it could be reached"
_METADATA = "the metadata service of a cloud, which hands out the machine's own credentials"
_MULTICAST = "a name of the local network (RFC 6762), which no DNS answers"
# Names that are never allowed, whatever they resolve to; those below them neither.
NEVER = {
    "localhost": _HERE,  # RFC 6761 6.3
    "localhost.localdomain": _HERE,  # /etc/hosts of several distributions
    "ip6-localhost": _HERE,
    "ip6-loopback": _HERE,
    "metadata.google.internal": _METADATA,
    "metadata.goog": _METADATA,
    "instance-data.ec2.internal": _METADATA,
    "metadata.tencentyun.com": _METADATA,
    "local": _MULTICAST,
    "invalid": "a name that does not exist (RFC 6761 6.4)",
    "onion": "a name that no DNS may be asked about (RFC 7686)",
}


class Host(NamedTuple):
    """What a text that stands for a host is: exactly one of the three is not ""."""

    name: str = ""  # lower case, IDNA, without the final dot
    address: str = ""  # in its usual spelling
    problem: str = ""  # why it is neither


class HostPattern(NamedTuple):
    """One `name:port` or `*.name:port`: the host itself, or every host below it but not itself."""

    name: str  # normal form
    wild: bool
    port: int

    @classmethod
    def parse(cls, text: str) -> "HostPattern":
        """Raises PolicyError for what `problem` complains of, and for a group."""
        why = problem(text) or ("a group of hosts" if text.startswith("@") else "")
        if why:
            raise PolicyError(f"{text!r} is no host of an allow-list: {why}")
        name, _, port = text.partition(":")
        return cls(normalise(name.removeprefix("*.")).name, name.startswith("*."), int(port or DEFAULT_PORT))

    def __str__(self) -> str:
        return f"{'*.' if self.wild else ''}{self.name}:{self.port}"


def problem(text: str) -> str:
    """Why `text` cannot stand in `allow`, or ""."""
    if not text:
        return "empty"
    if text.startswith("@"):
        return "" if text in GROUPS else "not a group"
    if "/" in text:
        return "a URL or a range of addresses"
    if "@" in text:
        return "a name with a user"
    if text.startswith("[") or text.count(":") > 1:
        return _ADDRESS
    name, colon, port = text.partition(":")
    if colon and not is_port(port):
        return f"no port ({port!r}): 1 to 65535"
    wild = name.startswith("*.")
    return _name_problem(name[2:] if wild else name, wild)


def meant(text: str) -> str:
    """What was probably meant by a text with a problem, or ""."""
    if text.startswith("@"):
        from bawn.policy.kinds import nearest

        return nearest(text.lower(), GROUPS)
    name = text.partition("://")[2].partition("/")[0].rpartition("@")[2]
    return name if name and not problem(name) else ""


def is_port(text: str) -> bool:
    """1 to 65535, in one spelling only."""
    return text.isascii() and text.isdigit() and text[0] != "0" and len(text) < 6 and int(text) < 65536


def normalise(text: str) -> Host:
    """The one reading of a host, for what a policy says and for what a client asks.

    Numbers that inet_aton(3) takes for an address (2130706433, 0x7f.1, 0177.0.0.1, 127.1) are that
    address: whoever connects would read them so. Never raises.
    """
    if ":" in text or text.startswith("["):
        return _ipv6(text)
    name = _to_ascii(text).removesuffix(".") if len(text) < _LONGEST else ""
    labels = name.split(".")
    if len(name) > 253 or not all(re.fullmatch(_LABEL, label) for label in labels):
        return Host(problem=_NO_NAME)
    if not re.fullmatch(_NUMERIC, labels[-1]):
        return Host(name)
    address = _ipv4(labels)
    return Host(address=address) if address else Host(problem=_NO_NUMBER)


def never(name: str) -> str:
    """Why the normal name is never allowed, or ""."""
    labels = name.split(".")
    tails = (".".join(labels[at:]) for at in range(max(0, len(labels) - 3), len(labels)))
    return next((NEVER[tail] for tail in tails if tail in NEVER), "")


def _name_problem(name: str, wild: bool) -> str:
    if name == "*" or (wild and not name.strip(".*")):
        return "every host: name those it needs"
    if "*" in name:
        return "a star that is not the whole first label"
    if not _AMBIGUOUS.isdisjoint(name):
        return "a name that programs spell in two ways: write its xn-- form"
    host = normalise(name)
    if host.address or host.problem == _NO_NUMBER:
        return _ADDRESS
    if host.problem:
        return host.problem
    if wild and "." not in host.name:
        return "a whole top-level domain"
    return never(host.name)


def _to_ascii(name: str) -> str:
    """Lower case and IDNA; "" for what cannot be converted."""
    if name.isascii():
        return name.lower()
    if not _AMBIGUOUS.isdisjoint(name):
        return ""
    try:
        return re.sub(_DOTS, ".", name).lower().encode("idna").decode().lower()
    except UnicodeError:
        return ""


def _ipv4(labels: list[str]) -> str:
    """The dotted quad that inet_aton(3) makes of one to four numbers, or ""."""
    if len(labels) > 4 or not all(re.fullmatch(_NUMERIC, label) for label in labels):
        return ""
    try:
        *heads, last = map(_number, labels)
    except ValueError:  # an 8 in an octal number
        return ""
    room = 4 - len(heads)  # the last number fills what is left
    if last >= 1 << (8 * room) or any(head > 255 for head in heads):
        return ""
    return ".".join(map(str, (*heads, *last.to_bytes(room))))


def _number(text: str) -> int:
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8 if text.startswith("0") else 10)


def _ipv6(text: str) -> Host:
    """An address in brackets or bare; a zone ("%eth0") chooses an interface, and is refused."""
    import ipaddress  # 3 ms, which a run with no such text does not pay

    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        address = ipaddress.IPv6Address(bare)
    except ValueError:
        return Host(problem=_NO_NAME)
    return Host(problem=_NO_NAME) if "%" in bare else Host(address=str(address))
