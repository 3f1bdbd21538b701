"""The decision: may this box reach this host at this port, and at which addresses.

`decide` looks at the name alone, before any DNS: a question for a name that is not listed would
itself carry data out. `judge` then looks at every address that DNS gave, once; what it returns is
what may be dialled, and nothing is asked again. One bad address among good ones denies them all:
whoever mixes them is not to be trusted with the rest.
"""

from collections.abc import Iterable

from bawn.egress.addresses import NOTHING, Forbidden, classify
from bawn.egress.authority import parse_authority
from bawn.egress.rules import RULES
from bawn.policy import hosts
from bawn.policy.hosts import HostPattern
from bawn.typed import NamedTuple

_Ports = dict[int, str]  # port -> the line that allows it


class Ruleset(NamedTuple):
    """Compiled patterns. Each question costs a few look-ups, however many patterns there are.

    Built with nothing it denies everything.
    """

    exact: dict[str, _Ports] = {}  # noqa: RUF012  never written to after `compiled`
    below: dict[str, _Ports] = {}  # noqa: RUF012  by the suffix behind `*.`
    forbidden: Forbidden = NOTHING


class Decision(NamedTuple):
    """`by` is the line that allows; `fix` the line of `allow` that would, "" where none may."""

    allowed: bool
    rule: str
    reason: str
    name: str  # the normal form; as it was asked, shortened, where it has none
    port: int
    by: str = ""
    fix: str = ""


class Judged(NamedTuple):
    """The decision after DNS, and the addresses that may be dialled: none where it denies."""

    decision: Decision
    addresses: tuple[str, ...] = ()


def compiled(lines: Iterable[tuple[HostPattern, str]], forbidden: Forbidden = NOTHING) -> Ruleset:
    """From patterns, each with the line of policy it came from; the first of equal ones is named."""
    exact: dict[str, _Ports] = {}
    below: dict[str, _Ports] = {}
    for pattern, line in lines:
        table = below if pattern.wild else exact
        table.setdefault(pattern.name, {}).setdefault(pattern.port, line)
    return Ruleset(exact, below, forbidden)


def decide(ruleset: Ruleset, host_text: str, port: int) -> Decision:
    """The one decision on a name: for CONNECT, absolute-form, the transparent way and `bawn why`."""
    host = hosts.normalise(host_text)
    shown = host.name or host.address or host_text[:80]
    if not 0 < port < 65536:
        return _denied("BWN814", f"no port ({port}): 1 to 65535", shown, 0)
    if host.problem:
        return _denied("BWN813", f"{shown!r}: {host.problem}", shown, port)
    if host.address:
        return _literal(ruleset, host_text[:80], host.address, port)
    never = hosts.never(host.name)
    if never:
        return _denied("BWN812", f"{shown}: {never}", shown, port)
    ports: set[int] = set()
    for table, key in _places(host.name):
        found = (ruleset.exact if table == "exact" else ruleset.below).get(key)
        if found and port in found:
            reason = f"{shown} port {port} is allowed by {found[port]}"
            return Decision(True, "BWN800", reason, shown, port, found[port])
        ports.update(found or ())
    return _unlisted(ruleset, shown, port, ports)


def decide_authority(ruleset: Ruleset, text: str, default: int = 0) -> Decision:
    """`decide` for a `host:port` as a client wrote it."""
    authority = parse_authority(text, default)
    if authority.problem:
        return _denied("BWN814", f"{text[:80]!r}: {authority.problem}", text[:80], 0)
    return decide(ruleset, authority.host, authority.port)


def listed_ports(ruleset: Ruleset, host_text: str) -> tuple[int, ...]:
    """Every port at which `decide` allows the host."""
    name = hosts.normalise(host_text).name
    ports: set[int] = set()
    for table, key in _places(name):
        ports.update((ruleset.exact if table == "exact" else ruleset.below).get(key, ()))
    return tuple(port for port in sorted(ports) if decide(ruleset, host_text, port).allowed)


def judge(ruleset: Ruleset, decision: Decision, addresses: Iterable[str]) -> Judged:
    """Every address that DNS gave for the name of an allowed `decision`, in DNS's own order."""
    if not decision.allowed:
        return Judged(decision)
    good: dict[str, None] = {}
    for text in addresses:
        verdict = classify(text, ruleset.forbidden)
        if not verdict.public:
            rule = "BWN821" if verdict.own else "BWN820" if verdict.address else "BWN823"
            said = verdict.problem if verdict.address else f"{text[:80]!r}: {verdict.problem}"
            return Judged(refused(decision, rule, f"{decision.name} leads to {said}"))
        good[verdict.address] = None
    if not good:
        return Judged(refused(decision, "BWN822", f"{decision.name} has no address"))
    return Judged(decision, tuple(good))


def refused(decision: Decision, rule: str, reason: str) -> Decision:
    """A decision that said yes to the name, denied by what came later: no line of policy helps."""
    return decision._replace(allowed=False, rule=rule, reason=reason, fix="")


def _places(name: str) -> Iterable[tuple[str, str]]:
    """Where a pattern for the name may stand, the closest first. `*.a.test` is not `a.test`."""
    yield "exact", name
    at = name.find(".")
    while at >= 0:
        yield "below", name[at + 1 :]
        at = name.find(".", at + 1)


def _unlisted(ruleset: Ruleset, name: str, port: int, ports: set[int]) -> Decision:
    fix = f"{name}:{port}"  # a normal name that is not of hosts.NEVER: always a valid line
    if ports:
        reason = f"{name} is allowed at port {', '.join(map(str, sorted(ports)[:8]))} only"
        return _denied("BWN802", reason, name, port, fix)
    if not ruleset.exact and not ruleset.below:
        return _denied("BWN803", RULES["BWN803"].what, name, port, fix)
    return _denied("BWN801", f"{name}: {RULES['BWN801'].what}", name, port, fix)


def _literal(ruleset: Ruleset, asked: str, address: str, port: int) -> Decision:
    verdict = classify(address, ruleset.forbidden)
    said = "" if asked == address else f"{asked} is the address {address}; "
    if not verdict.public:
        return _denied("BWN811", f"{said}{verdict.problem}", address, port)
    return _denied("BWN810", f"{said}{address}: only names can be allowed", address, port)


def _denied(rule: str, reason: str, name: str, port: int, fix: str = "") -> Decision:
    return Decision(False, rule, reason, name, port, "", fix)
