"""The filter table as `iptables-save` writes it, parsed, and walked from the hook. Pure.

A chain that nothing jumps to filters nothing, however right its rules look (moby #48560); and a rule
below one that accepts or returns first is never asked (ufw-docker #12). Only a walk tells.
"""

import shlex
from collections.abc import Mapping

from bawn.plan.wall import PREFIX
from bawn.typed import Literal, NamedTuple

Certainty = Literal["always", "sometimes", "never"]
_ENDS = ("ACCEPT", "DROP", "REJECT", "QUEUE", "NFQUEUE")
_ASIDE = ("-m", "--match", "--comment", "--reject-with", "-g", "-j")  # they match nothing


class Rule(NamedTuple):
    text: str  # as written, without "-A CHAIN"
    matches: tuple[tuple[str, bool, str], ...]  # (option, negated, value)
    target: str  # "" where a rule only counts
    goto: bool = False


class Filter(NamedTuple):
    """The filter table of one family: policies of the built-in chains, and every chain's rules."""

    policies: Mapping[str, str]
    chains: Mapping[str, tuple[Rule, ...]]


class Reached(NamedTuple):
    """What a box's new packet meets on the way to a chain. `before`: (chain, rule) that may let it pass
    before it gets there."""

    there: bool
    before: tuple[tuple[str, Rule], ...]


EMPTY = Filter({}, {})


def parse(text: str) -> Filter:
    """The filter table; EMPTY where the text has none. Raises ValueError for what is not understood."""
    policies: dict[str, str] = {}
    chains: dict[str, list[Rule]] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("*"):
            table = line[1:].strip()
        elif line.startswith("#") or not line.strip() or table != "filter":
            continue
        elif line.startswith(":"):
            name, policy = line[1:].split()[:2]
            chains[name] = []
            if policy != "-":
                policies[name] = policy
        elif line.startswith(("-A ", "[")):
            words = shlex.split(line.partition("] ")[2] if line.startswith("[") else line)
            if words[1] not in chains:
                raise ValueError(f"line {number}: a rule of the unknown chain {words[1]}")
            chains[words[1]].append(_rule(words[2:]))
        elif line.strip() != "COMMIT":
            raise ValueError(f"line {number}: {line[:80]!r} is no line of iptables-save")
    return Filter(policies, {name: tuple(rules) for name, rules in chains.items()})


def _rule(words: list[str]) -> Rule:
    matches: list[tuple[str, bool, str]] = []
    target, goto, negated = "", False, False
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "!":
            negated = True
            continue
        values = []
        while at < len(words) and not words[at].startswith("-") and words[at] != "!":
            values.append(words[at])
            at += 1
        if word in ("-j", "-g"):
            target, goto = " ".join(values[:1]), word == "-g"
        elif word not in _ASIDE:
            matches.append((word, negated, " ".join(values)))
        negated = False
    return Rule(shlex.join(words), tuple(matches), target, goto)


def reach(table: Filter, hook: str, goal: str) -> Reached:
    """Walks what a new packet of any box meets from the built-in chain `hook` until `goal`."""
    before: list[tuple[str, Rule]] = []
    there = _visit(table, hook, goal, before, ()) == "there"
    return Reached(there, tuple(before))


def _visit(
    table: Filter, name: str, goal: str, before: list[tuple[str, Rule]], above: tuple[str, ...]
) -> Literal["there", "ended", "on"]:
    """`on`: the walk goes on with the caller's next rule. What may return before `goal` passes it by."""
    if name == goal:
        return "there"
    returns: list[tuple[str, Rule]] = []
    for rule in table.chains.get(name, ()):
        certainty = match(rule)
        if certainty == "never" or name in above:
            continue
        if rule.target == "RETURN":
            returns.append((name, rule))
            if certainty == "always":
                return "on"
        elif rule.target in _ENDS:
            if rule.target not in ("DROP", "REJECT"):
                before.append((name, rule))
            if certainty == "always":
                return "ended"
        elif rule.target in table.chains:
            found = _visit(table, rule.target, goal, before, (*above, name))
            if found == "there":
                if certainty == "sometimes" and rule.target != goal:
                    before.append((name, rule))  # others do not come this way
                before += returns
                return "there"
            if certainty == "always" and (found == "ended" or rule.goto):
                return found
    return "on"


def match(rule: Rule) -> Certainty:
    """Does it match a new packet out of a box, whatever its addresses?"""
    found = [_one(*one) for one in rule.matches]
    if "never" in found:
        return "never"
    return "sometimes" if "sometimes" in found else "always"


def _one(option: str, negated: bool, value: str) -> Certainty:
    if option in ("-i", "--in-interface"):
        return _flip(_box_interface(value), negated)
    states = {"--ctstate": "NEW", "--state": "NEW", "--ctdir": "ORIGINAL"}
    if option in states:
        return _flip("always" if states[option] in value.split(",") else "never", negated)
    return "sometimes"


def _box_interface(value: str) -> Certainty:
    stem = value.removesuffix("+")
    if value.endswith("+") and PREFIX.startswith(stem):
        return "always"
    return "sometimes" if value.startswith(PREFIX) else "never"


def _flip(certainty: Certainty, negated: bool) -> Certainty:
    flipped: dict[Certainty, Certainty] = {"always": "never", "never": "always", "sometimes": "sometimes"}
    return flipped[certainty] if negated else certainty
