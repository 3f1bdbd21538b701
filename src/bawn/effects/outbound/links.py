"""Symbolic links, followed by name against the roots: one link after another, never by the kernel."""

import os
import posixpath
import stat
from collections.abc import Sequence

from bawn.effects.outbound.openat2 import openat2
from bawn.outbound.locate import Place, Root, Roots

MAX_LINKS = 40  # as the kernel: path_resolution(7)
_LOOK = os.O_PATH | os.O_NOFOLLOW


class LeadsOut(Exception):
    """A link on the way leads out of every root, or the links go in a circle."""


def follow(roots: tuple[Root, ...], where: Roots, fds: Sequence[int], place: Place) -> Place:
    """Where `place` leads: a place without links, and without `..`.

    Raises LeadsOut, or OSError for what is missing or barred.
    """
    root, todo = place.root, place.rel.split("/")[::-1]
    at: list[str] = []
    links = 0
    while todo:
        name = todo.pop()
        if name in ("", "."):
            continue
        if name == "..":
            if at:
                at.pop()
                continue
            above = posixpath.dirname(roots[root].real)
            root, at, todo = _again(where, above, todo)
            continue
        fd = openat2(fds[root], "/".join([*at, name]), _LOOK)
        try:
            mode = os.fstat(fd).st_mode
            target = os.readlink("", dir_fd=fd) if stat.S_ISLNK(mode) else ""
        finally:
            os.close(fd)
        if not stat.S_ISLNK(mode):
            if todo and not stat.S_ISDIR(mode):
                raise NotADirectoryError(20, "not a directory")
            at.append(name)
            continue
        links += 1
        if links > MAX_LINKS:
            raise LeadsOut
        if target.startswith("/"):
            root, at, todo = _again(where, "/", [*todo, *target.split("/")[::-1]])
        else:
            todo += target.split("/")[::-1]
    return Place(root, "/".join(at))


def _again(where: Roots, base: str, todo: list[str]) -> tuple[int, list[str], list[str]]:
    """Begins anew with an absolute path, in whichever root holds it.

    What lies outside is not looked at, so `..` there is taken by the text alone.
    """
    place = where.locate(f"{base.rstrip('/')}/{'/'.join(reversed(todo))}")
    if place.root < 0:
        raise LeadsOut
    return place.root, [], place.rel.split("/")[::-1]
