"""The wall, done: applied, looked at, opened for a run and closed, watched, removed.

What stands belongs to one network namespace, and so does its record: `<runtime>/wall/<inode>/`, in memory
like the rules themselves. `wall.json` is what was applied; `ways/RUN.json` what each run has opened. A
record is written before the kernel is told: what is open without one is an error, never the other way.

A run in bridge mode: `open_for` when its network is there, `guard` when its container has started and
before anything of the agent's runs, `Watch.check` every second, `close_for` at the end.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator

from bawn.effects import wall_tools
from bawn.effects.atomic import write_atomic
from bawn.errors import BawnError, EngineError, HostError
from bawn.plan import wall_check, wall_docker
from bawn.plan.model import Finding
from bawn.plan.wall import TABLE, Wall, Way, change, check_way, elements, removal, ruleset
from bawn.plan.wall_rules import finding, holds
from bawn.typed import Any, NamedTuple

_BOTH = "sudo bawn wall apply, then: sudo bawn wall verify"
BOOT = "/etc/bawn"  # what the boot unit loads; read where this boot has no record of its own


class Status(NamedTuple):
    """`wall` is None where none was applied here."""

    wall: Wall | None
    ways: tuple[Way, ...]
    findings: tuple[Finding, ...]
    counters: tuple[tuple[str, int], ...] = ()  # of each rule that drops, in packets

    @property
    def holds(self) -> bool:
        return holds(self.findings)


def place(runtime: str) -> str:
    """Where the wall of this network namespace has its record. Raises HostError where not root."""
    wall_tools.need_root()
    return f"{runtime}/wall/{os.stat('/proc/self/ns/net').st_ino}"


def observe(never: tuple[str, ...]) -> Wall:
    """What is to be applied here."""
    return Wall(never, wall_tools.has_ibrname())


def recorded(where: str, boot: str = BOOT) -> Wall | None:
    """What was applied here, or what the boot unit has loaded."""
    own = "/proc/1/ns/net"
    at_home = os.path.exists(own) and os.stat(own).st_ino == os.stat("/proc/self/ns/net").st_ino
    data = _json(f"{where}/wall.json") or (_json(f"{boot}/wall.json") if at_home else None)
    return None if data is None else wall_from(data, f"{where}/wall.json")


def wall_from(data: dict[str, Any], path: str) -> Wall:
    """Raises HostError for a record that is none."""
    try:
        return Wall(tuple(map(str, data["never"])), bool(data["ibrname"]), str(data["prefix"]))
    except (KeyError, TypeError):
        raise HostError(f"{path} is no record of a wall", "sudo bawn wall apply") from None


def ways(where: str) -> tuple[Way, ...]:
    """What runs have opened, also those whose bawn is dead."""
    try:
        names = sorted(os.listdir(f"{where}/ways"))
    except FileNotFoundError:
        return ()
    found = (_json(f"{where}/ways/{name}") for name in names if name.endswith(".json"))
    return tuple(_way(data) for data in found if data is not None)


def _way(data: dict[str, Any]) -> Way:
    published = tuple((str(address), int(port)) for address, port in data["published"])
    ports = tuple(map(str, data["ports"]))
    return Way(data["run"], data["bridge"], data["address"], int(data["port"]), ports, published)


def _json(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise HostError(f"cannot read {path}: {error}", "sudo bawn wall apply") from None
    return dict(data)


def _write(path: str, value: Wall | Way) -> None:
    write_atomic(path, json.dumps(value._asdict()).encode(), 0o600)


@contextlib.contextmanager
def _locked(where: str, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    """One change at a time, and no look at half of one."""
    os.makedirs(f"{where}/ways", mode=0o700, exist_ok=True)
    fd = os.open(f"{where}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, how)
        yield
    finally:
        os.close(fd)


def apply(where: str, wanted: Wall) -> tuple[bool, Status]:
    """Loads the wall, or finds it loaded: whether anything was changed, and how it stands then.

    The tables are re-read and compared; where they are not as planned, or nft refuses, what stood before
    stands again, and EngineError says why. The second layer cannot undo the first: what is wrong with it
    is a finding.
    """
    with _locked(where):
        before = recorded(where)
        open_now = _alive(where)
        now = _status(where, wanted)
        stands = now.holds and before == wanted
        if stands and not _mendable(now.findings):
            return False, now
        if not stands:
            _load(where, before, wanted, open_now)
        layered = _apply_layer(where, wanted)
        done = _status(where, wanted)
        return True, done._replace(findings=(*layered, *done.findings))


def _alive(where: str) -> tuple[Way, ...]:
    """The ways whose bridge is there; records of others go."""
    there = wall_tools.bridges()
    found = []
    for way in ways(where):
        if way.bridge in there:
            found.append(way._replace(ports=tuple(p for p in way.ports if p in there)))
            _write(f"{where}/ways/{way.run}.json", found[-1])
        else:
            os.unlink(f"{where}/ways/{way.run}.json")
    return tuple(found)


def _load(where: str, before: Wall | None, wanted: Wall, open_now: tuple[Way, ...]) -> None:
    """The tables; the undo is the record of before, kept until the new ones have been compared."""
    undo = ruleset(before, open_now) if before else removal()
    write_atomic(f"{where}/undo.nft", undo.encode(), 0o600)
    try:
        wall_tools.load(ruleset(wanted, open_now))
        found = wall_check.tables(wall_tools.planned(wanted), wall_tools.seen(), open_now)
        if not holds(found):
            raise EngineError("the tables are not as planned: " + found[0].message)
    except BawnError as error:
        try:
            wall_tools.load(undo)
        except BawnError as second:
            raise EngineError(
                f"ROLLBACK FAILED: {second.message} (it had failed: {error.message}); "
                f"what stood before lies in {where}/undo.nft",
                f"nft -f {where}/undo.nft",
            ) from None
        os.unlink(f"{where}/undo.nft")
        raise EngineError(f"the wall is not applied, what stood before stands: {error.message}") from None
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{where}/verified.json")
    _write(f"{where}/wall.json", wanted)
    os.unlink(f"{where}/undo.nft")


def _mendable(findings: tuple[Finding, ...]) -> bool:
    """Is there something about the second layer that applying it again can mend?"""
    backends, _ = wall_tools.backends()
    anchors = tuple(f" {one.anchor}" for one in wall_check.places(backends))
    return bool(anchors) and any(
        one.rule in ("BWN871", "BWN873") or (one.rule == "BWN872" and one.place.endswith(anchors))
        for one in findings
    )


def _apply_layer(where: str, wall: Wall) -> tuple[Finding, ...]:
    found = []
    backends, _ = wall_tools.backends()
    tables = wall_tools.seen().loaded.tables
    for one in wall_check.places(backends):
        if one.backend == "nft" and (one.family, "filter") not in tables:
            write_atomic(f"{where}/made-{one.family}", b"", 0o600)  # iptables makes the table
        try:
            wall_tools.restore(one, wall_docker.restore(wall, one))
        except BawnError as error:
            found.append(finding("BWN871", f"{one.family}tables-{one.backend} {one.anchor}", error.message))
    return tuple(found)


def remove(where: str, force: bool = False) -> bool:
    """Takes bawn's tables, chains and jumps away, and nothing else; False where there was nothing.

    Raises HostError while a run has a way open (its box would lose its wall), unless `force`.
    """
    with _locked(where):
        open_now = _alive(where)
        if open_now and not force:
            runs = ", ".join(way.run for way in open_now)
            raise HostError(
                f"runs are behind the wall: {runs}", "end them; or: sudo bawn wall remove --force"
            )
        backends, problems = wall_tools.backends()
        layer = wall_check.leftovers(backends)
        there = wall_tools.seen().listing
        for one in layer:
            wall_tools.restore(one, wall_docker.removal(one))
            _unmake(where, one)
        wall_tools.load(removal())
        for name in ("wall.json", "verified.json", *(f"ways/{way.run}.json" for way in ways(where))):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{where}/{name}")
        if problems:
            raise EngineError(f"the tables are gone; not looked into: {'; '.join(problems)}")
        return bool(layer or there)


def _unmake(where: str, one: wall_docker.Place) -> None:
    """An empty filter table that was not there before the wall goes again."""
    made = f"{where}/made-{one.family}"
    if one.backend != "nft" or not os.path.exists(made):
        return
    now, _ = wall_tools.backends()
    table = next(b.table for b in now if (b.backend, b.family) == one[:2])
    if not any(table.chains.values()) and set(table.policies.values()) <= {"ACCEPT"}:
        wall_tools.load(f"delete table {one.family} filter\n")
    os.unlink(made)


def status(where: str, wanted: Wall | None = None) -> Status:
    """What is loaded against what was applied; with `wanted`, also what was applied against that."""
    with _locked(where, fcntl.LOCK_SH):
        return _status(where, wanted)


def _status(where: str, wanted: Wall | None = None) -> Status:
    wall = recorded(where)
    opened = ways(where)
    found = []
    if wall is None:
        found.append(finding("BWN891", where))
    elif wanted is not None and wall != wanted:
        found.append(finding("BWN866", "wall", f"applied: {wall}; wanted: {wanted}"))
    try:
        seen = wall_tools.seen()
        found += wall_check.tables(wall_tools.planned(wall or wanted or Wall()), seen, opened)
    except BawnError as error:
        return Status(wall, opened, (*found, finding("BWN875", "nft", error.message)))
    found += [*wall_check.foreign(seen.loaded), *layer_status(wall or wanted or Wall())]
    counters = {name: n for (_, table, name), n in seen.loaded.counters.items() if table == TABLE}
    return Status(wall, opened, tuple(found), tuple(counters.items()))


def layer_status(wall: Wall) -> tuple[Finding, ...]:
    """The second layer, in whichever back-end docker uses."""
    backends, problems = wall_tools.backends()
    found = [finding("BWN878", "iptables", text) for text in problems]
    rules = {}
    for one in wall_check.places(backends):
        try:
            rules[one.backend, one.family] = wall_tools.layer(wall, one)
        except BawnError as error:
            found.append(finding("BWN878", f"{one.family}tables-{one.backend}", error.message))
    return (*found, *wall_check.second(backends, rules))


def verified(where: str) -> None:
    """Writes down that packets were sent against the wall that stands, and it held."""
    _write(f"{where}/verified.json", recorded(where) or Wall())


def ready(where: str) -> None:
    """Raises HostError where the wall that was applied has not been verified since."""
    applied, tried = recorded(where), _json(f"{where}/verified.json")
    if applied is None:
        raise HostError("bridge mode needs the wall, and none was applied here", _BOTH)
    if tried is None or wall_from(tried, f"{where}/verified.json") != applied:
        raise HostError("the wall was not tried since it was applied", "sudo bawn wall verify")


def open_for(
    where: str, run: str, bridge: str, address: str, port: int, published: tuple[tuple[str, int], ...] = ()
) -> None:
    """Opens the one way of a run: tcp from its bridge to `address`:`port`, the proxy's.

    The bridge is there already and has no port. Raises EngineError where the wall does not hold, or for a
    way that is none; nothing is open then.
    """
    with _locked(where):
        now = _status(where)
        if now.wall is None or not now.holds:
            reasons = "; ".join(one.message for one in now.findings if one.severity == "error")
            raise EngineError(f"the wall does not hold: {reasons}", _BOTH)
        way = Way(run, bridge, address, port, (), published)
        check_way(now.wall, way)
        _write(f"{where}/ways/{run}.json", way)
        try:
            wall_tools.load(change("add", way))
        except BaseException:
            os.unlink(f"{where}/ways/{run}.json")
            raise


def guard(where: str, run: str) -> tuple[str, ...]:
    """Takes the ports of the run's bridge into the bridge table; the ports.

    To be called when the container has started and before anything of the agent's runs. Raises EngineError
    where the bridge has no port, or more than the one of the run's own container.
    """
    with _locked(where):
        way = _find(where, run)
        found = wall_tools.ports_of(way.bridge)
        if len(found) != 1:
            shown = ", ".join(found) or "none"
            raise EngineError(f"the bridge {way.bridge} of run {run} has the ports {shown}; wanted: its one")
        return _guard(where, way, found)


def guard_all(where: str, run: str) -> tuple[str, ...]:
    """The same for a bridge with several ports: what `verify` tries peers with."""
    with _locked(where):
        way = _find(where, run)
        return _guard(where, way, wall_tools.ports_of(way.bridge))


def _guard(where: str, way: Way, ports: tuple[str, ...]) -> tuple[str, ...]:
    way = way._replace(ports=ports)
    _write(f"{where}/ways/{way.run}.json", way)
    wall_tools.load(change("add", way, ("ports", "gates")))
    return ports


def _find(where: str, run: str) -> Way:
    way = next((way for way in ways(where) if way.run == run), None)
    if way is None:
        raise EngineError(f"run {run} has opened no way")
    return way


def close_for(where: str, run: str) -> None:
    """Closes the way of a run: open connections end too. What is gone already is no fault."""
    with _locked(where):
        way = next((way for way in ways(where) if way.run == run), None)
        if way is None:
            return
        loaded = wall_tools.seen().loaded
        have = {name: found for (_, table, name), found in loaded.elements.items() if table == TABLE}
        there = tuple(n for n, want in elements(way).items() if set(want) <= have.get(n, frozenset()))
        wall_tools.load(change("delete", way, there))
        os.unlink(f"{where}/ways/{run}.json")


class Watch:
    """Asked every second by a run: does the wall still stand? The kernel's generation of rules says
    whether anything has changed at all; only then is everything compared."""

    def __init__(self, where: str, run: str = "") -> None:
        self._where, self._run = where, run
        self._generation = -1
        self._found: tuple[Finding, ...] = ()

    def check(self) -> tuple[Finding, ...]:
        """The findings of severity error; any of them ends the run. Raises nothing."""
        try:
            now = wall_tools.generation()
            if now != self._generation:
                with _locked(self._where, fcntl.LOCK_SH):
                    self._found = self._compare()
                self._generation = now
        except (BawnError, OSError) as error:
            self._found = (finding("BWN875", "nft", str(error)),)
            self._generation = -1
        return self._found

    def _compare(self) -> tuple[Finding, ...]:
        wall = recorded(self._where)
        if wall is None:
            return (finding("BWN891", self._where),)
        opened = ways(self._where)
        found = wall_check.tables(wall_tools.planned(wall), wall_tools.seen(), opened)
        if self._run and all(way.run != self._run for way in opened):
            found = (*found, finding("BWN865", f"run {self._run}", "its way is closed"))
        return tuple(one for one in found if one.severity == "error")
