"""The text of a path -> the root it lies in, by whole components. Pure: nothing is looked at.

A path outside every root is denied here, by its text: not even whether it exists is asked, since the
answer to that would be an answer to whoever wrote the reply. What lies inside by its text may still
lead out by a link; that is found when it is opened.
"""

import posixpath

from bawn.outbound.extract import PATH_MAX
from bawn.typed import NamedTuple


class Root(NamedTuple):
    """A directory from which files may leave: as the policy spells it, and resolved once."""

    text: str  # in the policy
    spelled: str  # `~` expanded
    real: str  # every link resolved when the policy was loaded


class Place(NamedTuple):
    """Where a path lies. `rule` is set where it lies nowhere; `root` is then -1."""

    root: int
    rel: str  # below the root; "" the root itself
    climbs: bool = False  # `..` stands in it: it means what the kernel says, link by link
    rule: str = ""


def spelled(path: str, home: str) -> tuple[str, str]:
    """(absolute path, "") or ("", rule)."""
    plain = path.isascii() and path.isprintable()
    if not plain and any(ord(c) < 32 or 127 <= ord(c) < 160 for c in path):
        return "", "BWN923"
    if path.startswith("~/"):
        path = f"{home}{path[1:]}"
    elif path.startswith(("~", "$")) or path[1:3] in (":\\", ":/"):
        return "", "BWN921"
    elif not path.startswith("/"):
        return "", "BWN920"
    if len(path) > PATH_MAX // 4 and len(path.encode(errors="replace")) >= PATH_MAX:
        return "", "BWN923"
    if not plain:
        try:
            path.encode()
        except UnicodeEncodeError:
            return "", "BWN923"
    return path, ""


class Roots:
    """All roots, to be asked many times."""

    def __init__(self, roots: tuple[Root, ...]) -> None:
        """The deepest counts where several hold a path."""
        several = {(top, number) for number, root in enumerate(roots) for top in (root.spelled, root.real)}
        self._tops = [
            (f"{top}/", number) for top, number in sorted(several, key=lambda t: (-len(t[0]), t[1]))
        ]
        self._none = Place(-1, "", False, "BWN901" if roots else "BWN902")

    def locate(self, path: str) -> Place:
        """The root that holds the absolute `path`."""
        if "//" in path or "/./" in path or path.endswith(("/", "/.")):
            path = "/" + "/".join(part for part in path.split("/") if part not in ("", "."))
        if "/.." in path and ".." in path.split("/"):
            found = self._holding(path)
            if found.root >= 0 and not _leaves(found.rel):
                return found._replace(climbs=True)
            path = posixpath.normpath(path)
        return self._holding(path)

    def _holding(self, path: str) -> Place:
        for top, number in self._tops:
            if path.startswith(top):
                return Place(number, path[len(top) :], False, "")
            if path == top[:-1]:
                return Place(number, "", False, "")
        return self._none


def _leaves(rel: str) -> bool:
    """Going along `rel`, `..` would climb out of where it begins."""
    depth = 0
    for part in rel.split("/"):
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False
