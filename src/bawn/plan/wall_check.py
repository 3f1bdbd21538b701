"""What is loaded against what was planned: every difference is a finding. Pure.

The text of a table is compared as nft itself lists it: the planned one is loaded into an empty
namespace and listed by the same program, so no version's way of writing can make a difference or hide one.
"""

import difflib
from collections.abc import Iterable

from bawn.plan import wall_docker, xtables
from bawn.plan.model import Finding
from bawn.plan.nft_json import Loaded
from bawn.plan.wall import FAMILIES, PRIORITY, SETS, TABLE, Way, elements
from bawn.plan.wall_docker import CHAIN, Place
from bawn.plan.wall_rules import finding
from bawn.typed import NamedTuple

_MISSING = {"inet": "BWN860", "bridge": "BWN861"}
# chains of nftables that iptables-nft manages: `xtables` reads those, by their own tool
_XTABLES = ("raw", "mangle", "nat", "filter", "security")


class Seen(NamedTuple):
    """The tables of the wall as they are loaded. `listing`: (family, text) of each that is there."""

    loaded: Loaded
    listing: tuple[tuple[str, str], ...]


def tables(planned: dict[str, str], seen: Seen, ways: Iterable[Way]) -> tuple[Finding, ...]:
    """`planned`: family -> the text as nft lists it; `ways`: what runs have opened."""
    found: list[Finding] = []
    there = dict(seen.listing)
    for family in FAMILIES:
        place = f"table {family} {TABLE}"
        if (family, TABLE) not in seen.loaded.tables:
            found.append(finding(_MISSING[family], place))
        elif not seen.loaded.rules.get((family, TABLE)):
            found.append(finding("BWN863", place))
        elif there.get(family) != planned[family]:
            found.append(finding("BWN862", place, difference(planned[family], there.get(family, ""))))
        if (family, TABLE) in seen.loaded.tables:
            found += _elements(family, seen.loaded, tuple(ways))
    return tuple(found)


def difference(planned: str, loaded: str) -> str:
    """The lines that are planned and gone, or there and not planned; the first few."""
    lines = difflib.unified_diff(planned.splitlines(), loaded.splitlines(), lineterm="", n=0)
    changed = [f"{line[0]} {line[1:].strip()}" for line in lines if line[:3] not in ("---", "+++", "@@ ")]
    shown = [line for line in changed if line[:2] in ("- ", "+ ")]
    more = f" and {len(shown) - 4} more" if len(shown) > 4 else ""
    return "planned (-) and loaded (+): " + "; ".join(shown[:4]) + more


def _elements(family: str, loaded: Loaded, ways: tuple[Way, ...]) -> list[Finding]:
    found = []
    for name in (n for n, of in SETS.items() if of == family):
        have = loaded.elements.get((family, TABLE, name), frozenset())
        want = {element: way.run for way in ways for element in elements(way)[name]}
        place = f"set {family} {TABLE} {name}"
        for extra in sorted(have - want.keys()):
            found.append(finding("BWN864", place, f"{' . '.join(extra)} is open, and no run has opened it"))
        for gone in sorted(want.keys() - have):
            found.append(finding("BWN865", place, f"{' . '.join(gone)} of run {want[gone]} is gone"))
    return found


def foreign(loaded: Loaded) -> tuple[Finding, ...]:
    """What other tables do to packets of boxes at the wall's hooks.

    An accept of another base chain ends that chain alone, and the wall is asked all the same; a drop
    ends everything; a flowtable takes a flow out of the hooks.
    """
    found = []
    for base in loaded.bases:
        if (
            base.table == TABLE
            or base.family not in ("inet", "ip")
            or base.hook not in ("input", "prerouting")
        ):
            continue
        if base.first == "drop" or (base.policy == "drop" and base.hook == "input"):
            when = "before" if base.priority < PRIORITY else "after"
            text = f"it drops by {'rule' if base.first == 'drop' else 'policy'}, {when} the wall"
            found.append(finding("BWN876", f"chain {base.family} {base.table} {base.chain}", text))
    for family, table, chain in loaded.offloads:
        found.append(finding("BWN877", f"chain {family} {table} {chain}"))
    return tuple(found)


class Backend(NamedTuple):
    """One family of one back-end of iptables, and how many rules of other tables than filter it has."""

    backend: str
    family: str
    table: xtables.Filter


def places(backends: Iterable[Backend]) -> tuple[Place, ...]:
    """Where the second layer belongs: wherever docker keeps its chain; of IPv6, where docker has none,
    the hook itself in the back-end that docker uses."""
    every = tuple(backends)
    of_docker = [b for b in every if wall_docker.DOCKER_USER in b.table.chains]
    found = [_place(b, wall_docker.DOCKER_USER) for b in of_docker]
    used = {b.backend for b in of_docker if b.family == wall_docker.V4}
    for one in every:
        alone = one.family == wall_docker.V6 and one not in of_docker
        if alone and one.backend in used:
            found.append(_place(one, "FORWARD"))
    return tuple(found)


def _place(one: Backend, anchor: str) -> Place:
    jumps = sum(rule.target == CHAIN for rule in one.table.chains.get(anchor, ()))
    return Place(one.backend, one.family, anchor, jumps)


def leftovers(backends: Iterable[Backend]) -> tuple[Place, ...]:
    """Wherever the chain or a jump to it is, also where it does not belong: what removing takes away."""
    found = []
    for one in backends:
        anchors = [n for n, rules in one.table.chains.items() if any(r.target == CHAIN for r in rules)]
        anchors = anchors or (["FORWARD"] if CHAIN in one.table.chains else [])
        found += [_place(one, anchor) for anchor in anchors]
    return tuple(found)


def second(
    backends: Iterable[Backend], planned: dict[tuple[str, str], tuple[str, ...]]
) -> tuple[Finding, ...]:
    """The second layer; `planned`: (back-end, family) -> the rules of CHAIN as its own tool writes them."""
    every = tuple(backends)
    found: list[Finding] = []
    where = places(every)
    if not where:
        found.append(finding("BWN870", "second layer", "docker has no chain DOCKER-USER here (yet)"))
    for place in where:
        one = next(b for b in every if (b.backend, b.family) == place[:2])
        found += _layer(place, one.table, planned.get(place[:2], ()))
    busy = sorted({b.backend for b in every if any(b.table.chains.values())})
    if len(busy) > 1:
        found.append(finding("BWN874", " and ".join(busy)))
    return tuple(found)


def _layer(place: Place, table: xtables.Filter, planned: tuple[str, ...]) -> list[Finding]:
    name = f"{place.family}tables-{place.backend} filter"
    rules = table.chains.get(CHAIN)
    if rules is None or not place.jumps:
        what = f"no chain {CHAIN}" if rules is None else f"{place.anchor} has no jump to {CHAIN}"
        return [finding("BWN871", name, what)]
    found = []
    if tuple(rule.text for rule in rules) != planned:
        text = difference("\n".join(planned), "\n".join(rule.text for rule in rules))
        found.append(finding("BWN873", f"{name} {CHAIN}", text))
    way = xtables.reach(table, "FORWARD", CHAIN)
    if not way.there:
        found.append(finding("BWN870", f"{name} {CHAIN}", f"FORWARD does not lead to {CHAIN}"))
    for chain, rule in way.before if way.there else ():
        found.append(finding("BWN872", f"{name} {chain}", f"{rule.text} comes before {CHAIN}"))
    return found
