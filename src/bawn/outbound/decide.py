"""The decision on an object's own path: hidden by a pattern, a mask or a refused place, or not. Pure.

Deny wins inside a root. Patterns of `outbound.deny` hold below each root, masks of a profile below
the mount they belong to, on resolved host paths: a mask hides a file in the box, and this hides it
from the gateway. A directory that is hidden hides all below it. Names are compared without regard to
case, so that `.ENV` of a disk that ignores case is `.env`: the guard then denies a little more.
"""

from collections.abc import Iterable

from bawn.outbound.locate import Root
from bawn.policy.pathtext import within
from bawn.policy.patterns import Matcher, Names, normal
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
        self._folders: dict[str, _Folder] = {}
        self._special = bool(self._refused or self._targets)

    def hidden(self, path: str) -> Hidden | None:
        """Why the object at `path` (absolute, resolved) may not leave; None where it may."""
        above = path[: path.rindex("/")]
        folder = self._folders.get(above) or self._folder(above)
        return folder.hidden or self._entry(folder, path)

    def _folder(self, path: str) -> "_Folder":
        """What holds in the directory, or hides it and so everything in it. Each is asked about once.

        Threads may ask at once: what they make is the same, and a full table is replaced, not emptied.
        """
        if len(self._folders) > _REMEMBERED:
            self._folders = {}
        known = self._folders
        unknown = []
        above: _Folder | None = None
        while True:
            above = known.get(path)
            if above:
                break
            unknown.append(path)
            if not path:
                break
            path = path.rpartition("/")[0]
        for path in reversed(unknown):
            hidden = above.hidden or self._entry(above, path) if above else None
            above = known[path] = _Folder(hidden, self._holding(path))
        assert above
        return above

    def _entry(self, folder: "_Folder", path: str) -> Hidden | None:
        """What hides the entry at `path` of a directory that is not hidden itself."""
        found = _ask(folder, path, path[path.rindex("/") + 1 :])
        if found is None and self._special:
            if path in self._refused:
                return Hidden("BWN912", f"{path}: {self._refused[path]}")
            if path in self._targets:
                return Hidden("BWN911", f"{path}: {self._targets[path]} leads to it, and that name is hidden")
        return found

    def _holding(self, folder: str) -> tuple["_Table", ...]:
        """The patterns that are asked about the names in `folder`."""
        found = []
        for base, matcher, rule, label in self._tables:
            if within(folder or "/", base):
                more = matcher.enter(folder[len(base) :].lstrip("/"))
                found.append(_Table((matcher.names, more) if more else (matcher.names,), rule, label))
        return tuple(found)


class _Table(NamedTuple):
    names: tuple[Names, ...]
    rule: str
    label: str


class _Folder(NamedTuple):
    hidden: Hidden | None
    tables: tuple[_Table, ...]


def _ask(folder: _Folder, path: str, name: str) -> Hidden | None:
    key = normal(name, True)
    for names, rule, label in folder.tables:
        for one in names:
            pattern = one.match(key)
            if pattern is not None:
                return Hidden(rule, f"{path} is hidden by {pattern} of {label}")
    return None
