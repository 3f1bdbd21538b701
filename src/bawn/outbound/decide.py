"""The decision on an object's own path: hidden by a pattern, a mask or a refused place, or not. Pure.

Deny wins inside a root. Patterns of `outbound.deny` hold below each root, masks of a profile below
the mount they belong to, on resolved host paths: a mask hides a file in the box, and this hides it
from the gateway. A directory that is hidden hides all below it. Names are compared without regard to
case, so that `.ENV` of a disk that ignores case is `.env`: the guard then denies a little more.
"""

from collections.abc import Iterable

from bawn.outbound.locate import Root
from bawn.policy.pathtext import within
from bawn.policy.patterns import Matcher
from bawn.typed import NamedTuple

_REMEMBERED = 4096  # directories


class Mask(NamedTuple):
    """The masks of one mount, below its resolved source."""

    base: str
    patterns: tuple[str, ...]
    label: str  # "profile.build"


class Refused(NamedTuple):
    """A place that nothing leaves from, though it lie in a root."""

    path: str
    why: str


class Hidden(NamedTuple):
    rule: str
    reason: str


class Ruleset:
    """Everything that the guard decides by. Built with nothing it denies everything."""

    def __init__(
        self,
        roots: tuple[Root, ...] = (),
        deny: tuple[str, ...] = (),
        masks: Iterable[Mask] = (),
        refused: Iterable[Refused] = (),
        targets: Iterable[tuple[str, str]] = (),
    ) -> None:
        """`targets`: objects that a link with a hidden name leads to, each with that link."""
        self.roots = roots
        self._refused = {one.path: one.why for one in refused}
        self._targets = dict(targets)
        matcher = Matcher(deny, casefold=True)
        self._tables = [
            (root.real, matcher, "BWN910", f"{root.text} (outbound.deny)") for root in roots if deny
        ]
        self._tables += [
            (mask.base, Matcher(mask.patterns, casefold=True), "BWN911", mask.label)
            for mask in masks
            if mask.patterns
        ]
        self._folders: dict[str, Hidden | None] = {}

    def hidden(self, path: str) -> Hidden | None:
        """Why the object at `path` (absolute, resolved) may not leave; None where it may."""
        target = self._targets.get(path)
        if target:
            return Hidden("BWN911", f"{path}: {target} leads to it, and that name is hidden")
        folder, _, name = path.rpartition("/")
        return self._folder(folder) or self._name(folder, name)

    def _folder(self, folder: str) -> Hidden | None:
        """What hides the directory, and so everything in it. Each is asked about once."""
        known = self._folders
        if folder in known:
            return known[folder]
        if len(known) > _REMEMBERED:
            known.clear()
        unknown = []
        while folder and folder not in known:
            unknown.append(folder)
            folder = folder.rpartition("/")[0]
        found = known.get(folder)
        for path in reversed(unknown):
            above, _, name = path.rpartition("/")
            found = found or self._name(above, name)
            known[path] = found
        return found

    def _name(self, folder: str, name: str) -> Hidden | None:
        path = f"{folder}/{name}"
        why = self._refused.get(path)
        if why is not None:
            return Hidden("BWN912", f"{path}: {why}")
        for base, matcher, rule, label in self._tables:
            if within(folder or "/", base):
                pattern = matcher.match(name, path[len(base) :].lstrip("/"))
                if pattern is not None:
                    return Hidden(rule, f"{path} is hidden by {pattern} of {label}")
        return None
