"""What one run used and was refused -> the narrowest list that would have let it. Pure.

It proposes lines, it changes nothing, and only names that `decide` may ever allow: an address, a metadata
service or a name of the local network has no line (`Decision.fix` is empty), so none is proposed.
"""

from collections.abc import Iterable

from bawn.evidence.events import Passage
from bawn.policy.hosts import DEFAULT_PORT
from bawn.typed import NamedTuple


class Proposal(NamedTuple):
    """`lines`: (the line, why it is there); `gone`: lines of today's list that are not in it, and why;
    `never`: what was refused and cannot be allowed."""

    lines: tuple[tuple[str, str], ...]
    gone: tuple[tuple[str, str], ...]
    never: tuple[tuple[str, str], ...]


def propose(allow: tuple[str, ...], passages: Iterable[Passage]) -> Proposal:
    """`allow` is the profile's list, `passages` are those of one run.

    A group stays whole where it was used (its hosts belong together, and change with it); a wildcard becomes
    the hosts that were used of it.
    """
    used: dict[str, dict[str, int]] = {}  # line of policy -> host line -> times
    wanted: dict[str, int] = {}
    never: dict[str, str] = {}
    for one in passages:
        if one.by:
            hosts = used.setdefault(one.by, {})
            hosts[_line(one.name, one.port)] = hosts.get(_line(one.name, one.port), 0) + 1
        elif one.fix:
            wanted[_short(one.fix)] = wanted.get(_short(one.fix), 0) + 1
        elif one.verdict == "denied":
            never.setdefault(one.name or "?", one.reason)
    lines: dict[str, str] = {}
    gone: dict[str, str] = {}
    for line in allow:
        hosts = used.get(line, {})
        if not hosts:
            gone[line] = "not used in this run"
        elif line.startswith("*."):
            gone[line] = "its hosts that were used stand by themselves"
            lines |= {host: f"used {times} times, by {line}" for host, times in hosts.items()}
        else:
            lines[line] = f"used {sum(hosts.values())} times"
    for line, times in wanted.items():
        lines.setdefault(line, f"refused {times} times")
    gone = {line: why for line, why in gone.items() if line not in lines}
    return Proposal(tuple(lines.items()), tuple(gone.items()), tuple(never.items()))


def as_diff(allow: tuple[str, ...], proposal: Proposal) -> tuple[str, ...]:
    """The list of today against the proposed one, a line each; () where they are the same."""
    new = dict(proposal.lines)
    gone = dict(proposal.gone)
    rows = [f'-  "{line}",   # {gone[line]}' if line in gone else f'   "{line}",' for line in allow]
    rows += [f'+  "{line}",   # {why}' for line, why in new.items() if line not in allow]
    return tuple(rows) if any(row[0] in "+-" for row in rows) else ()


def _line(name: str, port: int) -> str:
    return _short(f"{name}:{port}")


def _short(line: str) -> str:
    return line.removesuffix(f":{DEFAULT_PORT}")
