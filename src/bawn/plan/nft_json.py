"""`nft -j list ruleset`, parsed: what is loaded, as far as the wall needs to know. Pure."""

import json
from collections.abc import Iterator, Mapping

from bawn.typed import Any, NamedTuple


class Base(NamedTuple):
    """A chain that the kernel itself calls. `first` is its first verdict that asks for nothing."""

    family: str
    table: str
    chain: str
    hook: str
    priority: int
    policy: str
    first: str = ""


class Loaded(NamedTuple):
    tables: frozenset[tuple[str, str]]  # (family, table)
    bases: tuple[Base, ...]
    rules: Mapping[tuple[str, str], int]  # (family, table) -> how many rules
    elements: Mapping[tuple[str, str, str], frozenset[tuple[str, ...]]]  # (family, table, set)
    counters: Mapping[tuple[str, str, str], int]  # (family, table, counter) -> packets
    offloads: tuple[tuple[str, str, str], ...]  # (family, table, chain) that hand flows to a flowtable


NOTHING = Loaded(frozenset(), (), {}, {}, {}, ())


def parse(text: str) -> Loaded:
    """Raises ValueError for what is not nft's JSON."""
    try:
        entries = json.loads(text)["nftables"]
    except (KeyError, TypeError):
        raise ValueError("no nftables in it") from None
    kinds: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        for kind, value in entry.items():
            kinds.setdefault(kind, []).append(value)
    rules = kinds.get("rule", [])
    try:
        return Loaded(
            frozenset((t["family"], t["name"]) for t in kinds.get("table", [])),
            tuple(_base(c, rules) for c in kinds.get("chain", []) if "hook" in c),
            _count(rules),
            {
                (s["family"], s["table"], s["name"]): frozenset(_elements(s.get("elem") or []))
                for s in kinds.get("set", [])
            },
            {(c["family"], c["table"], c["name"]): int(c["packets"]) for c in kinds.get("counter", [])},
            tuple((*_table(r), r["chain"]) for r in rules if any("flow" in e for e in r.get("expr", ()))),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not as nft writes it: {error!r}") from None


def _table(entry: dict[str, Any]) -> tuple[str, str]:
    return entry["family"], entry["table"]


def _count(rules: list[dict[str, Any]]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for rule in rules:
        found[_table(rule)] = found.get(_table(rule), 0) + 1
    return found


def _base(chain: dict[str, Any], rules: list[dict[str, Any]]) -> Base:
    own = (r for r in rules if _table(r) == _table(chain) and r["chain"] == chain["name"])
    plain = (verdict for rule in own if (verdict := _unasked(rule.get("expr", ()))))
    priority = chain["prio"]
    return Base(*_table(chain), chain["name"], chain["hook"], int(priority), chain.get("policy", "accept"),
                next(plain, ""))  # fmt: skip


def _unasked(expressions: list[dict[str, Any]]) -> str:
    """The verdict of a rule that every packet meets; "" for one that asks for something."""
    for expression in expressions:
        (kind,) = expression
        if kind in ("accept", "drop", "reject", "return"):
            return kind
        if kind != "counter" and kind != "log":
            return ""
    return ""


def _elements(found: list[Any]) -> Iterator[tuple[str, ...]]:
    """Each a tuple of its parts: a lone value, a concatenation, or either with a comment or time-out."""
    for one in found:
        value = one["elem"]["val"] if isinstance(one, dict) and "elem" in one else one
        parts = value["concat"] if isinstance(value, dict) and "concat" in value else [value]
        yield tuple(str(part) for part in parts)
