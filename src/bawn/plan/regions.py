"""The places a profile gives to its box, each with one mode: the skeleton of the mount list. Pure.

A region is a work directory, a mount, a write root or a linked git directory, at its resolved
path, which is also its path in the box. Regions nest; the innermost one decides what a path may be
used for. Whatever is wrong with a source is a finding here, and the region is left out.
"""

from collections.abc import Iterable, Iterator

from bawn.facts.model import Facts, PathFact, TreeFact
from bawn.plan.model import Finding, Role
from bawn.plan.refused import Refusals
from bawn.plan.rules import finding, shell, writable_text
from bawn.policy import pathtext
from bawn.policy.model import Mode, Place, Profile
from bawn.policy.pathtext import ancestors, within
from bawn.policy.patterns import Matcher, normal, problem
from bawn.typed import NamedTuple

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")


class Region(NamedTuple):
    path: str
    mode: Mode
    role: Role
    is_dir: bool
    fact: PathFact
    place: str  # in the policy
    mask: tuple[str, ...] = ()
    creates: tuple[str, ...] = ()  # directories to be made, parents first


class Wanted(NamedTuple):
    """A mount as the policy asks for it."""

    text: str
    mode: Mode
    role: Role
    place: str
    mask: tuple[str, ...]
    write: tuple[str, ...]
    create: bool


class Regions:
    """Regions by path, and the innermost one for any path."""

    def __init__(self, regions: Iterable[Region]) -> None:
        self.by_path = {region.path: region for region in regions}

    def holder(self, path: str) -> Region | None:
        """The innermost region that `path` is or lies in."""
        return next((self.by_path[up] for up in ancestors(path) if up in self.by_path), None)

    def writable(self, path: str) -> bool:
        region = self.holder(path)
        return region is not None and region.mode == "rw"

    def __iter__(self) -> Iterator[Region]:
        return iter(self.by_path.values())


def where(place: Place, policy: str, key: str = "") -> str:
    """As in `bawn.toml:12 profile.build.mount[0]`; only the field where there is no policy.

    A policy does not look its lines up for a run: `policy.lines.with_line` does, where one is shown.
    """
    field = f"{place.field}.{key}" if key else place.field
    line = f":{place.line}" if place.line else ""
    return f"{policy}{line} {field}" if policy else field


def wanted(profile: Profile, policy: str) -> list[Wanted]:
    """The work directory first, then the mounts, in the order of the policy."""
    found = []
    if profile.workdir:
        place = where(profile.place, policy, "workdir")
        found.append(
            Wanted(
                profile.workdir,
                profile.workdir_mode,
                "workdir",
                place,
                profile.mask,
                profile.write,
                False,
            )
        )
    for mount in profile.mounts:
        place = where(mount.place, policy)
        found.append(Wanted(mount.source, mount.mode, "mount", place, mount.mask, mount.write, mount.create))
    return found


class Collector:
    """Turns what is wanted into regions, with findings for what cannot be given."""

    def __init__(self, profile: Profile, facts: Facts, refusals: Refusals) -> None:
        self.facts = facts
        self.refusals = refusals
        self.host_image = profile.image == "host"
        self.at = {fact.asked: fact for fact in facts.paths}
        self.trees = {tree.source: tree for tree in facts.trees}
        self.findings: list[Finding] = []
        self.regions: dict[str, Region] = {}  # by path, folded where the tree ignores case

    def say(self, rule: str, place: str, message: str, **values: object) -> None:
        self.findings.append(finding(rule, place, message, **values))

    def take(self, want: Wanted) -> None:
        """One source and its write roots."""
        problems = {pattern: problem(pattern) for pattern in want.mask}
        for pattern, wrong in problems.items():
            if wrong:
                self.say("BWN301", want.place, f"mask {pattern!r}: {wrong}")
        mask = tuple(pattern for pattern, wrong in problems.items() if not wrong)
        if not want.mask:
            self.say("BWN309", want.place, f"nothing is masked below {want.text}")
        wrong = pathtext.problem(want.text, relative=want.role == "workdir")
        if wrong:
            self.say("BWN201", want.place, f"{want.text!r} is {wrong}")
            return
        fact = self.at.get(want.text)
        if fact is None or not self._usable(fact, want):
            return
        if fact.kind == "dir":
            tree = self.trees.get(fact.path)
            if tree is None:
                self.say("BWN208", want.place, f"{fact.path} was not walked")
                return
        else:
            self._single_file(fact, want, mask)
        if fact.links:
            via = ", ".join(fact.links)
            self.say("BWN205", want.place, f"{want.text} is {fact.path} in the box (by {via})")
        is_dir = fact.kind == "dir"
        self.add(Region(fact.path, want.mode, want.role, is_dir, fact, want.place, mask))
        for root in want.write:
            self._write_root(want, fact, root)

    def _usable(self, fact: PathFact, want: Wanted) -> bool:
        before = len(self.findings)
        if fact.error:
            self.say(
                "BWN203",
                want.place,
                fact.error,
                do="let the invoking user pass, or name another path",
            )
        elif fact.kind == "missing":
            path = fact.would_be
            self.say("BWN202", want.place, f"{path} does not exist", path=shell(path))
            self.findings += self.refusals.check(fact, want.place)
        else:
            self.findings += self.refusals.check(fact, want.place)
            if fact.kind not in ("dir", "file"):
                self.say("BWN204", want.place, f"{fact.path} is a {fact.kind}")
            if not writable_text(fact.path):
                self.say("BWN207", want.place, f"{fact.path!r} is not UTF-8")
            self._collision(fact, want)
        return not any(one.severity == "error" for one in self.findings[before:])

    def _collision(self, fact: PathFact, want: Wanted) -> None:
        path = fact.path
        if path in ("/tmp", "/home/agent") or within("/home/agent", path):
            self.say("BWN260", want.place, f"{path} is the box's own")
        system = next((top for top in _SYSTEM if within(path, top)), None)
        if system is None:
            return
        if want.mode == "rw" or want.write:
            self.say("BWN261", want.place, f"{path} lies in {system}, a directory of the system")
        elif self.host_image:
            self.say("BWN262", want.place, f"{path} lies in {system}")
        elif path == system:
            self.say("BWN260", want.place, f"{path} is the image's own")

    def _single_file(self, fact: PathFact, want: Wanted, mask: tuple[str, ...]) -> None:
        name = fact.path.rpartition("/")[2]
        folder = shell(fact.path.rpartition("/")[0] or "/")
        if want.mode == "rw":
            self.say("BWN220", want.place, f"{fact.path} is one file, writable", folder=folder)
        else:
            self.say("BWN221", want.place, f"{fact.path} is one file", folder=folder)
        pattern = Matcher(mask).match(name, name)
        if pattern:
            self.say("BWN310", want.place, f"{fact.path} is masked by {pattern!r} of its own mount")

    def _write_root(self, want: Wanted, source: PathFact, root: str) -> None:
        place = f"{want.place} write {root!r}"
        if want.mode == "rw":
            self.say("BWN232", place, f"{source.path} is writable")
            return
        wrong = pathtext.problem(root, relative=True)
        if wrong:
            self.say("BWN201", place, f"{root!r} is {wrong}")
            return
        if root.startswith(("/", "~")) or ".." in root.split("/") or not root.strip("/."):
            self.say("BWN231", place, f"{root!r} is not below its source", source=source.path)
            return
        fact = self.at.get(f"{want.text.rstrip('/')}/{root}")
        if fact is None or fact.error:
            why = fact.error if fact else f"{root} was not looked at"
            self.say("BWN203", place, why, do="let the invoking user pass, or name another path")
            return
        path = fact.path or fact.would_be
        if not within(path, source.path) or path == source.path:
            via = f" (by {', '.join(fact.links)})" if fact.links else ""
            self.say("BWN231", place, f"{root!r} is {path}{via}", source=source.path)
            return
        refusals = self.refusals.check(fact, place)
        self.findings += refusals
        if refusals:
            return
        if not writable_text(path):
            self.say("BWN207", place, f"{path!r} is not UTF-8")
        elif fact.kind == "missing" and not want.create:
            self.say("BWN230", place, f"{path} does not exist", path=shell(path))
        elif fact.kind not in ("dir", "missing"):
            folder = shell(path.rpartition("/")[0])
            self.say("BWN220", place, f"{path} is a {fact.kind}, not a directory", folder=folder)
        else:
            creates = _to_make(fact) if fact.kind == "missing" else ()
            for made in creates:
                self.say("BWN233", place, f"{made} is made before the start")
            self.add(Region(path, "rw", "write-root", True, fact, place, (), creates))

    def link(self, tree: TreeFact, mode: Mode, place: str) -> None:
        """A git directory that only the walk found."""
        fact = tree.at
        if fact is None or fact.path != tree.source or fact.kind != "dir":
            return
        refusals = self.refusals.check(fact, place)
        self.findings += refusals
        if not writable_text(fact.path):
            self.say("BWN207", place, f"{fact.path!r} is not UTF-8")
        elif not refusals:
            self.say("BWN604", place, f"{fact.path} is mounted {mode}")
            mask = tuple(pattern for base, pattern in tree.masks if base == tree.source)
            self.add(Region(fact.path, mode, "git-link", True, fact, place, mask))

    def add(self, region: Region) -> None:
        """One more region, unless its place is taken."""
        tree = next((self.trees[up] for up in ancestors(region.path) if up in self.trees), None)
        key = normal(region.path, True) if tree and tree.casefold else region.path
        other = self.regions.setdefault(key, region)
        if other is region:
            return
        places = f"{other.place} and {region.place}"
        mode: Mode = other.mode
        if other.mode == region.mode:
            self.say("BWN211", region.place, f"{region.path} is mounted twice", places=places)
        else:
            mode = "ro"
            modes = f"{other.mode} and {region.mode}"
            self.say("BWN210", region.place, f"{region.path} is mounted {modes}", places=places)
        masks = tuple(dict.fromkeys((*other.mask, *region.mask)))
        self.regions[key] = other._replace(mode=mode, mask=masks)


def _to_make(fact: PathFact) -> tuple[str, ...]:
    there = len(fact.chain)  # "/" and one for each directory that exists
    names = fact.would_be.split("/")
    return tuple("/".join(names[:end]) for end in range(there + 1, len(names) + 1))
