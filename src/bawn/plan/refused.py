"""Which mounts are refused: compared in every way that a path can be known by. Pure.

`policy.refused` is the table. A mount is refused when it is a refused path, lies in one, or holds
one, and "is" means: the same path by whole components (folded, in a tree that ignores case), the
same (device, inode), or the same place in the same file system (so that no bind mount has a new
name for `~/.ssh`). Refused paths that do not exist yet count: they may appear during the run.

Another user's home is refused too: a directory beside the invoker's home, or below /home or
/Users, that belongs to somebody who is neither the invoker, nor root, nor the one for whom the box
acts (as root without sudo: the owner of the work directory). In such a home the table holds too.

An override lifts one refused path by name, for every mount; or, where it names the source of a
mount, what that source lies in. It never lifts bawn's own files, engines, `/` or the kernel's.
"""

from collections.abc import Iterable, Iterator

from bawn.facts.model import Component, Facts, PathFact
from bawn.plan.model import Finding
from bawn.plan.rules import finding
from bawn.policy import refused as policy_refused
from bawn.policy.model import Override, Profile
from bawn.policy.pathtext import ancestors, expand, within
from bawn.policy.patterns import normal
from bawn.policy.refused import Refused
from bawn.typed import Literal, NamedTuple

Relation = Literal["is", "lies in", "holds"]
Key = str | tuple[int, int]


class Hit(NamedTuple):
    row: Refused
    relation: Relation
    where: str  # the refused path, resolved


class _Index:
    """Numbers of refused paths: by each key that one has itself, and by those of what holds it.

    A key is a path, a folded path after NUL, "device/path in the file system", or (device, inode).
    """

    def __init__(self, fold: bool) -> None:
        self.fold = fold
        self.at: dict[Key, list[int]] = {}
        self.above: dict[Key, list[int]] = {}
        # Siblings share what holds them, and most refused paths are siblings.
        self._parents: dict[str, list[int]] = {}
        self._chains: dict[str, tuple[tuple[Component, ...], list[int]]] = {}

    def add(self, number: int, fact: PathFact, paths: Iterable[str]) -> None:
        for path in paths:
            self._name(path, number)
            if self.fold:
                self._name("\0" + normal(path, True), number)
        if fact.origin:
            self._name(fact.origin, number)
        if fact.path:
            self.at.setdefault((fact.dev, fact.ino), []).append(number)
        if fact.chain:
            self._chains.setdefault(fact.chain[-1].path, (fact.chain, []))[1].append(number)

    def _name(self, key: str, number: int) -> None:
        self.at.setdefault(key, []).append(number)
        head, _, last = key.rpartition("/")
        if last:
            self._parents.setdefault(head + "/", []).append(number)

    def close(self) -> None:
        """Spreads the numbers over everything above, once all are added."""
        for parent, numbers in self._parents.items():
            for key in _upwards(parent):
                self.above.setdefault(key, []).extend(numbers)
        for chain, numbers in self._chains.values():
            for one in chain:
                self.above.setdefault((one.dev, one.ino), []).extend(numbers)

    def ways(self, fact: PathFact) -> Iterator[list[Key]]:
        """The ways in which `fact` is known, each from itself upwards."""
        path = fact.path or fact.would_be
        yield list(_upwards(path))
        if self.fold:
            yield list(_upwards("\0" + normal(path, True)))
        if fact.origin:
            yield list(_upwards(fact.origin))
        itself = (fact.dev, fact.ino) if fact.path else ""  # "": nothing is there yet
        yield [itself, *((one.dev, one.ino) for one in reversed(fact.chain))]


def _upwards(key: str) -> Iterator[str]:
    """`key` and every key above it; what stands before the first slash stays."""
    front, _, path = key.partition("/")
    return (front + up for up in ancestors("/" + path.rstrip("/")))


class Refusals:
    """The refused paths of this host, and the profile's overrides."""

    def __init__(self, profile: Profile, facts: Facts, uid: int) -> None:
        """`uid`: whose rights the box has on the host."""
        self._home = facts.host.home
        self._uid = uid
        self._no_homes_of = (facts.host.invoker_uid, 0)
        self._index = _Index(any(tree.casefold for tree in facts.trees))
        self._rows: list[tuple[Refused, str]] = []  # with the place, resolved
        asked = {fact.asked: fact for fact in facts.paths}
        for row, fact in _rows(asked, facts):
            text = expand(row.path, self._home).rstrip("/") or "/"
            place = fact.path or fact.would_be or text
            self._index.add(len(self._rows), fact, {place, text})
            self._rows.append((row, place))
        self._index.close()
        self._overrides: list[tuple[Override, PathFact]] = []
        for override in profile.overrides:
            text = expand(override.path, self._home)
            fact = asked.get(override.path, PathFact(override.path, text, "missing"))
            self._overrides.append((override, fact))
        self.used: dict[str, Override] = {}

    def hits(self, fact: PathFact) -> list[Hit]:
        """Every refused path that `fact` is, lies in or holds, each once."""
        found: dict[tuple[str, str], Hit] = {}

        def hit(number: int, relation: Relation) -> None:
            row, where = self._rows[number]
            if relation != "lies in" or row.scope == "tree":
                found.setdefault((row.rule, where), Hit(row, relation, where))

        for way in self._index.ways(fact):
            for steps, key in enumerate(way):
                for number in self._index.at.get(key, ()):
                    hit(number, "lies in" if steps else "is")
            for number in self._index.above.get(way[0], ()):
                hit(number, "holds")
        for other in self._other_home(fact):
            found.setdefault((other.row.rule, other.where), other)
        return list(found.values())

    def _other_home(self, fact: PathFact) -> list[Hit]:
        """`fact` seen from a home that is not the invoker's: the same table holds in it."""
        parents = {"/home", "/Users", self._home[: self._home.rindex("/")] or "/home"}
        place = fact.path or fact.would_be
        steps = [(one.path, one.uid) for one in fact.chain]
        steps += [(fact.path, fact.uid)] if fact.path else []
        found = []
        for home, uid in steps:
            if home[: home.rindex("/")] not in parents or uid in self._no_homes_of:
                continue
            inside: Relation = "is" if place == home else "lies in"
            if uid != self._uid:
                row = Refused(home, "BWN112", f"the home of another user (uid {uid})")
                found.append(Hit(row, inside, home))
            for row in policy_refused.REFUSED:
                if not row.path.startswith("~"):
                    continue
                where = expand(row.path, home)
                if within(place, where) and (row.scope == "tree" or place == where):
                    found.append(Hit(row, "is" if place == where else "lies in", where))
                elif within(where, place):
                    found.append(Hit(row, "holds", where))
        return found

    def check(self, fact: PathFact, place: str) -> list[Finding]:
        """A finding for each rule that refuses `fact`, overrides counted in (and noted as used)."""
        by_rule: dict[str, list[Hit]] = {}
        for hit in self.hits(fact):
            if not self._lifted(hit, fact):
                by_rule.setdefault(hit.row.rule, []).append(hit)
        return [
            self._finding(rule, hits, fact.path or fact.would_be, place)
            for rule, hits in sorted(by_rule.items())
        ]

    def _lifted(self, hit: Hit, fact: PathFact) -> bool:
        for override, lifts in self._overrides:
            where = lifts.path or lifts.would_be
            named = where == hit.where or expand(override.path, self._home) == hit.row.path
            whole = hit.relation != "holds" and where == fact.path
            if (named or whole) and hit.row.lift:
                self.used[override.path] = override
                return True
        return False

    def _finding(self, rule: str, hits: list[Hit], path: str, place: str) -> Finding:
        first = next((hit for hit in hits if hit.relation != "holds"), hits[0])
        more = f" (and {len(hits) - 1} more of this kind)" if len(hits) > 1 else ""
        is_it = first.relation == "is" and first.where == path
        what = "is refused" if is_it else f"{first.relation} {first.where}{more}, which is refused"
        message = f"{path} {what}: {first.row.why}"
        return finding(rule, place, message, refused=first.where)

    def about_overrides(self, profile_place: str) -> list[Finding]:
        """What is to be said of each override, once every mount was checked."""
        found = []
        for override, fact in self._overrides:
            place = f"{profile_place} {override.path}"
            where = fact.path or fact.would_be
            hits = self.hits(fact)
            fixed = [hit for hit in hits if not hit.row.lift and hit.relation != "holds"]
            if fixed:
                found.append(finding("BWN121", place, f"{where} stays refused: {fixed[0].row.why}"))
            elif override.path in self.used:
                message = f"{where} is mounted against the rule: {override.reason}"
                found.append(finding("BWN122", place, message))
            else:
                found.append(finding("BWN120", place, f"no mount needs {override.path} lifted"))
        return found


def _rows(asked: dict[str, PathFact], facts: Facts) -> list[tuple[Refused, PathFact]]:
    """Every refused path with its fact; one that was not observed still counts by its text."""
    home = facts.host.home
    rows = []
    for key, fact in asked.items():
        row = policy_refused.row(key)
        if row:
            rows.append((row, fact))
    known = {row.path for row, _ in rows}
    for row in policy_refused.REFUSED:
        if row.path not in known:
            rows.append((row, PathFact(row.path, "", "missing", would_be=expand(row.path, home))))
    for path in (facts.state, facts.runtime):
        row = policy_refused.row(f"${policy_refused.OWN}={path}") if path else None
        if row and path not in known:
            rows.append((row, PathFact(path, "", "missing", would_be=path)))
    # The invoker is root, or lives below /root: that is a home then, not a system directory.
    return [
        (row, fact)
        for row, fact in rows
        if row.path != "/root" or not (fact.path == home or within(home, "/root"))
    ]
