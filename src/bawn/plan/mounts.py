"""The mount compiler: the list that is the boundary. Pure.

    wanted -> regions     sources and write roots at their own resolved paths      (plan.regions)
           -> refused     what no box is given, whatever it is called              (plan.refused)
           -> covers      masks, protected files, pins                             (plan.covers)
           -> submounts   each by itself, so that read-only is read-only all the way down
           -> order       a parent always before its children

Because every mount is ordered by its path, no mount can hide one that lies deeper, and because
nothing is mounted in a masked directory, no mount can show what a mask hides.
"""

from collections.abc import Iterable

from bawn.facts.model import PLAIN_FILESYSTEMS, Facts
from bawn.plan import access
from bawn.plan.covers import MAX_COVERS, Covers
from bawn.plan.model import Bind, Finding, Guard, Identity, Tmpfs
from bawn.plan.refused import Refusals
from bawn.plan.regions import Collector, Region, Regions, wanted, where
from bawn.plan.rules import RULES, finding, shell, writable_text
from bawn.policy import host_exec
from bawn.policy.model import Engine, Profile
from bawn.policy.pathtext import ancestors, within
from bawn.policy.patterns import Matcher, problem, residues
from bawn.typed import NamedTuple

_LISTED = 20  # findings of one rule that are listed one by one
_SPECIAL = {"socket": "BWN240", "fifo": "BWN241", "device": "BWN242"}

HELD_BY: dict[Engine, str] = {
    "gvisor": (
        "checked by name at every open that the box's file server makes, so a masked name that "
        "appears later, or is replaced by a save on the host, stays unreadable; an open file "
        "stays open"
    ),
    "docker": (
        "watched with inotify: the box is stopped when a masked name appears or a masked file is "
        "replaced; until the watch wakes, some milliseconds, it could be read"
    ),
}


class MountPlan(NamedTuple):
    binds: tuple[Bind, ...]  # in mount order
    tmpfs: tuple[Tmpfs, ...]  # masked directories; the box's own come from plan.compile
    guards: tuple[Guard, ...]
    scan: tuple[str, ...]  # writable trees, none inside another
    overrides: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]
    creates: tuple[str, ...] = ()  # host directories to make first, parents first
    workdir: str = ""  # resolved; "" where it cannot be mounted or none is wanted


def path_key(path: str) -> tuple[str, ...]:
    """Sorts parents before children, and otherwise by name."""
    return tuple(path.split("/"))


def mount_order(binds: Iterable[Bind], tmpfs: Iterable[Tmpfs]) -> tuple[Bind | Tmpfs, ...]:
    """Every mount of a box in the order in which an engine must make them.

    On one target a scratch tmpfs comes first and a mask last (a stable sort keeps the rest).
    """
    scratch = [one for one in tmpfs if one.role == "scratch"]
    masks = [one for one in tmpfs if one.role == "mask"]
    return tuple(sorted([*scratch, *binds, *masks], key=lambda one: path_key(one.target)))


def compile_mounts(
    profile: Profile,
    facts: Facts,
    identity: Identity,
    policy_path: str = "",
) -> MountPlan:
    """The mounts of `profile` on this host, with everything that is wrong with them.

    `identity`: whose rights the command has on the host.
    `policy_path`: the policy file, resolved; it is never writable in a box.
    """
    return _Compiler(profile, facts, policy_path).run(identity.host_uid, identity.host_gid)


class _Compiler:
    def __init__(self, profile: Profile, facts: Facts, policy_path: str) -> None:
        self.profile = profile
        self.facts = facts
        self.policy_path = policy_path
        self.policy = policy_path.rpartition("/")[2]
        self.place = where(profile.place, self.policy)
        self.findings: list[Finding] = []
        self._host = host_exec.matcher(False)
        self._allowed = Matcher(one for one in profile.host_exec if not problem(one))

    def say(self, rule: str, place: str, message: str, **values: object) -> None:
        self.findings.append(finding(rule, place, message, **values))

    def run(self, uid: int, gid: int) -> MountPlan:
        profile, facts = self.profile, self.facts
        refusals = Refusals(profile, facts, uid)
        collector = Collector(profile, facts, refusals)
        for want in wanted(profile, self.policy):
            collector.take(want)
        regions = Regions(collector.regions.values())
        self._git_links(collector, regions)
        regions = Regions(collector.regions.values())
        self._steered_links(regions)
        self._aliases(regions)
        self._remote()
        covers = Covers(profile, facts, regions)
        covers.mask()
        for lost in covers.mounts_inside():
            del regions.by_path[lost]
        covers.protect(self.policy_path)
        binds = {
            region.path: Bind(region.path, region.path, region.mode, region.is_dir, region.role)
            for region in regions
        }
        for bind in self._submounts(regions, covers, refusals):
            binds.setdefault(bind.target, bind)
        for region in regions:
            self.findings += access.check(region, uid, gid, profile.image != "host")
            self._runs_on_host(region)
        self._found(regions, covers, uid, gid)
        masks, tmpfs = covers.mask_mounts()
        for bind in covers.binds.values():
            if bind.role == "protect" or bind.target not in binds:
                binds[bind.target] = bind
        binds.update((bind.target, bind) for bind in masks)
        if len(binds) + len(tmpfs) > MAX_COVERS:
            count = f"{len(binds) + len(tmpfs)} mounts, {MAX_COVERS} are allowed"
            self.say("BWN308", self.place, count)
        findings = [*collector.findings, *covers.findings, *self.findings]
        findings += refusals.about_overrides(self.place)
        workdir = next((one.path for one in regions if one.role == "workdir"), "")
        return MountPlan(
            tuple(sorted(binds.values(), key=lambda bind: path_key(bind.target))),
            tuple(sorted(tmpfs, key=lambda one: path_key(one.target))),
            self._guards(regions, binds.values()),
            _outermost(one.path for one in regions if one.mode == "rw" and one.is_dir),
            tuple(sorted((one.path, one.reason) for one in refusals.used.values())),
            shortened(findings),
            tuple(dict.fromkeys(made for region in regions for made in region.creates)),
            workdir,
        )

    def _git_links(self, collector: Collector, regions: Regions) -> None:
        """What is to be said of git's pointers, and the mounts that `git_links` adds for them."""
        linked = {tree.source: tree for tree in self.facts.trees if tree.at}
        for tree in self.facts.trees:
            region = regions.holder(tree.source)
            for one in tree.gitfiles if region else ():
                if not one.gitdir or not one.common:
                    self.say("BWN603", one.path, f"{one.path} leads to no git directory")
                elif regions.holder(one.common) is not None:
                    continue
                elif not one.acknowledged:
                    message = f"{one.path} leads to {one.gitdir}, which does not name it"
                    self.say("BWN602", one.path, message)
                elif not self.profile.git_links:
                    message = f"{one.path} leads to {one.gitdir}"
                    self.say("BWN601", one.path, message, path=shell(one.common))
                else:
                    over = next((up for up in ancestors(one.common) if up in linked), None)
                    holder = regions.holder(one.path)
                    if over and holder:
                        place = f"{self.place}.git_links"
                        if over not in collector.regions:
                            collector.link(linked[over], holder.mode, place)
                    else:
                        self.say("BWN208", one.path, f"{one.common} was not walked")

    def _steered_links(self, regions: Regions) -> None:
        """A link that an agent can write must not choose what is mounted."""
        for region in list(regions):
            for link in region.fact.links:
                at = link.partition(" -> ")[0]
                holder = regions.holder(at.rpartition("/")[0] or "/")
                if holder and holder.mode == "rw" and not within(region.path, holder.path):
                    message = f"{link}: the link lies in {holder.path}, which is writable"
                    self.say("BWN206", region.place, message, path=region.path)
                    del regions.by_path[region.path]
                    break

    def _aliases(self, regions: Regions) -> None:
        """Two paths to one directory (a bind mount) must not say two things about it."""
        by_origin = {one.fact.origin: one for one in regions if one.fact.origin}
        for region in regions:
            device, slash, rest = region.fact.origin.partition("/")
            for up in ancestors(f"/{rest}") if slash else ():
                other = by_origin.get(f"{device}{up}")
                if other is None or other is region or within(region.path, other.path):
                    continue
                if other.mode != region.mode or other.mask != region.mask:
                    message = f"{region.path} lies in {other.path}, by another name"
                    self.say("BWN212", region.place, message)
                break

    def _remote(self) -> None:
        docker = self.facts.docker
        if self.profile.engine == "docker" and docker and docker.remote:
            self.say("BWN270", self.place, f"docker runs at {docker.endpoint}")

    def _submounts(self, regions: Regions, covers: Covers, refusals: Refusals) -> list[Bind]:
        binds = []
        for tree in self.facts.trees:
            for sub in tree.submounts:
                holder = regions.holder(sub.point)
                if holder is None or covers.hidden(sub.point) or sub.point in regions.by_path:
                    continue
                refused = refusals.check(sub.at, sub.point)
                self.findings += refused
                name = sub.point.rpartition("/")[2]
                if not writable_text(sub.point):
                    self.say("BWN207", sub.point, f"{sub.point!r} is not UTF-8")
                elif sub.fstype not in PLAIN_FILESYSTEMS:
                    self.say("BWN251", sub.point, f"{sub.point} is {sub.fstype}", name=name)
                elif not refused:
                    mode = "ro" if sub.read_only else holder.mode
                    self.say("BWN250", sub.point, f"{sub.point} ({sub.fstype}) is mounted {mode}")
                    is_dir = sub.at.kind == "dir"
                    binds.append(Bind(sub.point, sub.point, mode, is_dir, "mount"))
        return binds

    def _runs_on_host(self, region: Region) -> None:
        """A writable mount of a file or directory that the host itself runs."""
        above, _, name = region.path.rpartition("/")
        if region.mode != "rw" or region.role in ("write-root", "git-link"):
            return
        pattern = self._host.match(name, region.path.lstrip("/"))
        git = above.rpartition("/")[2] == ".git" and name in host_exec.GIT_FILES
        if (pattern or git) and not self._allowed.match(name, name):
            why = host_exec.HOST_EXEC[pattern] if pattern else host_exec.GIT_FILES[name]
            self.say("BWN405", region.place, f"{region.path}: {why}", name=name)

    def _found(self, regions: Regions, covers: Covers, uid: int, gid: int) -> None:
        """Sockets, pipes, devices, and what could not be looked into."""
        for tree in covers.trees:
            for find in tree.finds:
                if find.kind in _SPECIAL and not covers.hidden(find.path):
                    what = f"{find.path} is a {find.kind}"
                    name = find.path.rpartition("/")[2]
                    self.say(_SPECIAL[find.kind], find.path, what, name=name, source=tree.source)
            for one in tree.unreadable:
                opens = one.uid == uid and regions.writable(one.path)  # it can chmod its own
                rights = access.granted(uid, gid, one.uid, one.gid, one.mode)
                rule = "BWN280" if opens or rights & access.PASS else "BWN281"
                what = f"{one.path} (mode {one.mode:04o}, owner {one.uid}:{one.gid})"
                name = one.path.rpartition("/")[2]
                self.say(rule, one.path, what, path=shell(one.path), name=name)
            for path in tree.too_deep:
                begin = path[:80]
                self.say("BWN282", begin, f"{len(path)} characters: {begin}...")

    def _guards(self, regions: Regions, binds: Iterable[Bind]) -> tuple[Guard, ...]:
        """The masks that reach into each mounted directory, from its own mount and those above it.

        One for every directory that is a mount point of its own, pins too: seen from inside one,
        what lies above it is another mount.
        """
        held = HELD_BY[self.profile.engine]
        found = []
        for bind in sorted(binds, key=lambda bind: path_key(bind.target)):
            patterns: list[str] = []
            for up in ancestors(bind.target) if bind.is_dir else ():
                outer = regions.by_path.get(up)
                inside = bind.target[len(up) :].lstrip("/")
                for pattern in outer.mask if outer else ():
                    patterns += residues(pattern, inside)
            if patterns:
                found.append(Guard(bind.target, tuple(dict.fromkeys(patterns)), held))
        return tuple(found)


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    every = set(paths)
    return tuple(sorted(path for path in every if not any(up in every for up in ancestors(path)[1:])))


def shortened(findings: list[Finding]) -> tuple[Finding, ...]:
    """Errors first; of one rule the first few, and how many more there are."""
    order = {"error": 0, "warning": 1, "note": 2}
    rules: dict[str, list[Finding]] = {}
    for one in dict.fromkeys(findings):
        rules.setdefault(one.rule, []).append(one)
    kept: list[Finding] = []
    for rule in sorted(rules, key=lambda rule: (order[RULES[rule].severity], rule)):
        several = sorted(rules[rule], key=lambda one: (one.place, one.message))
        kept += several[:_LISTED]
        if len(several) > _LISTED:
            more = f"and {len(several) - _LISTED} more: {RULES[rule].title}"
            kept.append(several[_LISTED]._replace(message=more))
    return tuple(kept)
