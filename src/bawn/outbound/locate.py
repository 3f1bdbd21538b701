"""The text of a path -> the root it lies in, by whole components. Pure: nothing is looked at.

A path outside every root is denied here, by its text: not even whether it exists is asked, since the
answer to that would be an answer to whoever wrote the reply. What lies inside by its text may still
lead out by a link; that is found when it is opened.
"""

import posixpath

from bawn.outbound.extract import PATH_MAX
from bawn.policy.pathtext import within
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
    if not path.isprintable() and any(ord(c) < 32 or 127 <= ord(c) < 160 for c in path):
        return "", "BWN923"
    if path.startswith("~/"):
        path = f"{home}{path[1:]}"
    elif path.startswith(("~", "$")) or path[1:3] in (":\\", ":/"):
        return "", "BWN921"
    elif not path.startswith("/"):
        return "", "BWN920"
    if len(path) > PATH_MAX // 4 and len(path.encode(errors="replace")) >= PATH_MAX:
        return "", "BWN923"
    if not path.isascii():
        try:
            path.encode()
        except UnicodeEncodeError:
            return "", "BWN923"
    return path, ""


def locate(roots: tuple[Root, ...], path: str) -> Place:
    """The root that holds the absolute `path`, the deepest where several do."""
    if not roots:
        return Place(-1, "", rule="BWN902")
    if "//" in path or "/./" in path or path.endswith(("/", "/.")):
        path = "/" + "/".join(part for part in path.split("/") if part not in ("", "."))
    climbs = ".." in path and ".." in path.split("/")
    if climbs:
        found = _holding(roots, path)
        if found.root >= 0 and not _leaves(found.rel):
            return found._replace(climbs=True)
        path = posixpath.normpath(path)
    return _holding(roots, path)


def _holding(roots: tuple[Root, ...], path: str) -> Place:
    best, length, rel = -1, -1, ""
    for number, root in enumerate(roots):
        for top in (root.spelled, root.real):
            if len(top) > length and within(path, top):
                best, length, rel = number, len(top), path[len(top) :].strip("/")
    return Place(best, rel) if best >= 0 else Place(-1, "", rule="BWN901")


def _leaves(rel: str) -> bool:
    """Going along `rel`, `..` would climb out of where it begins."""
    depth = 0
    for part in rel.split("/"):
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False
