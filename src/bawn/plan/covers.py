"""What is put over the regions: masks, protected files, pins. Pure.

    mask      an empty file over a masked file, an empty read-only tmpfs over a masked directory
    protect   what the host runs or obeys, read-only on itself, where the region is writable
    pin       a directory mounted on itself, so that it cannot be renamed (EBUSY): git's, against
              `mv .git x; mkdir .git`, and those on the way to a mask with a slash in its pattern,
              which the next run would not find elsewhere

A mask wins over everything, a protected file over a writable region. Links are never covered
themselves (a mount follows them): their targets are, if they lie inside the mounts.
"""

from bawn.facts.model import Facts, Find, TreeFact
from bawn.plan.model import Bind, Finding, Tmpfs
from bawn.plan.regions import Regions
from bawn.plan.rules import finding, shell, writable_text
from bawn.policy import host_exec
from bawn.policy.model import Profile
from bawn.policy.pathtext import ancestors
from bawn.policy.patterns import Matcher, problem, residues

EMPTY = "@empty"  # the source of a mask: bawn's own empty file, wherever effects keep it
MAX_COVERS = 10_000  # mounts of one box; runsc needs about a millisecond for each
_GIT_REASONS = frozenset((*host_exec.GIT_FILES.values(), host_exec.GIT_POINTER))


class Covers:
    """Masks first (`mask`), then what is protected around them (`protect`)."""

    def __init__(self, profile: Profile, facts: Facts, regions: Regions) -> None:
        self.regions = regions
        self.trees = [tree for tree in facts.trees if regions.holder(tree.source)]
        self.findings: list[Finding] = []
        self.masked: dict[str, tuple[bool, str]] = {}  # path -> (directory, pattern)
        self.binds: dict[str, Bind] = {}
        allowed = [pattern for pattern in profile.host_exec if not problem(pattern)]
        self._allowed = {fold: Matcher(allowed, fold) for fold in (False, True)} if allowed else {}
        self._let: list[str] = []
        self._above = {up for region in regions for up in ancestors(region.path)}

    def say(self, rule: str, place: str, message: str, **values: object) -> None:
        self.findings.append(finding(rule, place, message, **values))

    def hidden(self, path: str) -> bool:
        """`path` is masked or lies in a masked directory."""
        return any(up in self.masked for up in ancestors(path))

    # Masks

    def mask(self) -> None:
        """Collects what is masked in every tree, and forgets what lies in a masked directory."""
        for tree in self.trees:
            for find in tree.finds:
                if find.kind == "mask":
                    self._mask(find, tree)
        self.masked = {
            path: cover
            for path, cover in self.masked.items()
            if not any(up in self.masked for up in ancestors(path)[1:])
        }
        for path, (_, pattern) in self.masked.items():
            if any("/" in form for form in residues(pattern, "")) and self.regions.writable(path):
                for up in self._inside_region(path):
                    self.binds[up] = Bind(up, up, "rw", True, "pin")

    def _mask(self, find: Find, tree: TreeFact) -> None:
        path = find.target or find.path
        if find.target == "?":
            self.say("BWN303", find.path, f"{find.path} leads nowhere")
            return
        if find.target:
            if self.regions.holder(path) is None:
                self.say("BWN304", find.path, f"{find.path} leads to {path}")
                return
            if path in self._above:
                self.say("BWN305", find.path, f"{find.path} leads to {path}, which holds a mount")
                return
            if self.regions.writable(find.path):
                name = path.rpartition("/")[2]
                self.say("BWN311", find.path, f"{find.path} leads to {path}", name=name)
        if not writable_text(path):
            self.say("BWN302", find.path, f"{path!r} is masked by {find.detail!r}")
            return
        if find.names > 1:
            message = f"{path} has {find.names - 1} other name(s), masked by {find.detail!r}"
            self.say("BWN307", path, message, source=shell(tree.source), path=shell(path))
        self.masked[path] = (find.is_dir, find.detail)

    def mounts_inside(self) -> list[str]:
        """Regions that a mask would hide, each a finding: they are not mounted."""
        lost = []
        for region in self.regions:
            over = next((up for up in ancestors(region.path) if up in self.masked), None)
            if over:
                message = f"{region.path} lies in {over}, which is masked"
                self.say("BWN306", region.place, message, pattern=self.masked[over][1])
                lost.append(region.path)
        return lost

    def mask_mounts(self) -> tuple[list[Bind], list[Tmpfs]]:
        binds = [
            Bind(EMPTY, path, "ro", False, "mask") for path, (is_dir, _) in self.masked.items() if not is_dir
        ]
        tmpfs = [
            Tmpfs(path, 4096, 0o555, True, True, "mask")
            for path, (is_dir, _) in self.masked.items()
            if is_dir
        ]
        return binds, tmpfs

    def _inside_region(self, path: str) -> list[str]:
        """The directories of `path`, deepest first, below the root of its region."""
        above = ancestors(path)[1:]
        last = next((n for n, up in enumerate(above) if up in self.regions.by_path), len(above))
        return above[:last]

    # Protected files

    def protect(self, policy: str) -> None:
        """Read-only binds for what the host runs, in writable regions; and pins around git's."""
        for tree in self.trees:
            for find in tree.finds:
                if find.kind in ("host-exec", "gitfile", "policy"):
                    self._protect(find, tree)
        if policy and self.regions.writable(policy) and not self.hidden(policy):
            self._cover(policy, False)
        for path in self._let:
            self.say("BWN402", path, f"{path} stays writable")
        for path in [path for path in self.binds if self._within_protected(path)]:
            del self.binds[path]

    def _within_protected(self, path: str) -> bool:
        """A protected directory above `path` says it all, unless a region lies in between."""
        if path in self.regions.by_path:
            return False
        for up in ancestors(path)[1:]:
            if up in self.regions.by_path:
                return False
            bind = self.binds.get(up)
            if bind and bind.role == "protect":
                return True
        return False

    def _protect(self, find: Find, tree: TreeFact) -> None:
        if not self.regions.writable(find.path) or self.hidden(find.path):
            return
        if self._is_allowed(find.path, tree):
            if find.kind != "policy":
                self._let.append(find.path)
                return
            self.say("BWN403", find.path, f"{find.path} is a policy")
        if not writable_text(find.path):
            self.say("BWN404", find.path, f"{find.path!r}: {find.detail}")
            return
        if not find.target:
            self._cover(find.path, find.is_dir)
            if find.detail in _GIT_REASONS and find.kind == "host-exec":
                self._pin(find.path)
            return
        leads = "nowhere" if find.target == "?" else f"to {find.target}"
        self.say("BWN401", find.path, f"{find.path} leads {leads}; {find.detail}")
        region = self.regions.holder(find.target) if find.target != "?" else None
        if region and region.mode == "rw" and find.kind != "gitfile":
            covered = find.target in self._above or self.hidden(find.target)
            if not covered and writable_text(find.target):
                self._cover(find.target, find.is_dir)

    def _is_allowed(self, path: str, tree: TreeFact) -> bool:
        """A pattern of `host_exec` names the file, or a directory that holds it."""
        if not self._allowed:
            return False
        matcher = self._allowed[tree.casefold]
        inside = path[len(tree.source) :].lstrip("/")
        return any(
            matcher.match(up.rpartition("/")[2], up.lstrip("/")) for up in ancestors("/" + inside)[:-1]
        )

    def _cover(self, path: str, is_dir: bool) -> None:
        self.binds[path] = Bind(path, path, "ro", is_dir, "protect")

    def _pin(self, path: str) -> None:
        """Holds the git directory of `path` in place, and what leads to it below `.git`."""
        above = self._inside_region(path)
        names = [up.rpartition("/")[2].lower() for up in above]
        top = len(names) - 1 - names[::-1].index(".git") if ".git" in names else 0
        for up in above[: top + 1]:
            if up not in self.binds:
                self.binds[up] = Bind(up, up, "rw", True, "pin")
