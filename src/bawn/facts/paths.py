"""Paths, resolved once: a policy's text becomes a `PathFact`, and nothing reads the text again.

Every component is looked at with `lstat` and every link is followed here, by bawn, so that the
result names the links on the way, the directory that bars it (and its mode), and where a missing
path would lie. What the kernel does afterwards with the resolved path crosses no link.
"""

import os
import stat
from collections.abc import Mapping

from bawn.facts import mountinfo
from bawn.facts.dirs import Dirs
from bawn.facts.model import Component, Kind, PathFact
from bawn.policy import pathtext, refused
from bawn.policy.model import Profile
from bawn.policy.pathtext import ancestors

MAX_LINKS = 40  # as the kernel: path_resolution(7)

_KINDS: tuple[tuple[int, Kind], ...] = (
    (stat.S_IFDIR, "dir"),
    (stat.S_IFREG, "file"),
    (stat.S_IFSOCK, "socket"),
    (stat.S_IFIFO, "fifo"),
    (stat.S_IFLNK, "link"),
)


class Resolver:
    """Resolves many paths and looks at each directory once."""

    def __init__(self, home: str, table: mountinfo.MountTable | None = None) -> None:
        self.home = home
        self.table = table
        self._seen: dict[str, os.stat_result | OSError] = {}
        self._chains: dict[str, tuple[Component, ...]] = {}

    def resolve(self, path: str, base: str = "", text: str = "") -> PathFact:
        """`path`, as a policy writes it, as a fact. Never raises: what is wrong stands in `error`.

        A relative path is put below `base`, and is an error where there is none. `text` stands in
        the fact as what was asked for, where that is not `path` itself.
        """
        wrong = pathtext.problem(path, relative=bool(base))
        if not wrong and path.startswith("~") and not self.home.startswith("/"):
            wrong = "below a home directory that is not known: write the path out"
        if wrong:
            return _wrong(text or path, [], f"{path!r} is {wrong}")
        return self.follow(pathtext.expand(path, self.home, base), text or path)

    def _lstat(self, path: str) -> os.stat_result | OSError:
        found = self._seen.get(path)
        if found is None:
            try:
                found = os.lstat(path)
            except OSError as error:
                found = error
            self._seen[path] = found
        return found

    def follow(self, path: str, text: str = "") -> PathFact:
        """The absolute `path`, whatever it looks like; `text` is how it was asked for."""
        text = text or path
        todo = path.split("/")[::-1]
        at = "/"
        links: list[str] = []
        info = self._lstat("/")
        while todo:
            name = todo.pop()
            if name in ("", "."):
                continue
            if name == "..":
                at = at[: at.rindex("/")] or "/"
                info = self._lstat(at)
                continue
            here = f"{at.rstrip('/')}/{name}"
            info = self._lstat(here)
            if isinstance(info, FileNotFoundError):
                return self._missing(text, here, todo, links)
            if isinstance(info, OSError):
                return PathFact(text, "", "missing", links=tuple(links), error=self._barred(at, info))
            if stat.S_ISLNK(info.st_mode):
                try:
                    target = os.readlink(here)
                except OSError as error:
                    return _wrong(text, links, self._barred(at, error))
                links.append(f"{here} -> {target}")
                if len(links) > MAX_LINKS:
                    wrong = f"{here}: more than {MAX_LINKS} symbolic links, or a circle of them"
                    return _wrong(text, links, wrong)
                todo += target.split("/")[::-1]
                if target.startswith("/"):
                    at = "/"
                info = self._lstat(at)
                continue
            at = here
        if isinstance(info, OSError):
            return _wrong(text, links, self._barred(at, info))
        return self._found(text, at, info, tuple(links))

    def _found(self, text: str, path: str, info: os.stat_result, links: tuple[str, ...]) -> PathFact:
        return PathFact(
            text,
            path,
            kind_of(info.st_mode),
            info.st_uid,
            info.st_gid,
            stat.S_IMODE(info.st_mode),
            info.st_dev,
            info.st_ino,
            links,
            "",
            self.chain(path[: path.rindex("/")] or "/") if path != "/" else (),
            path,
            self.table.origin(path) if self.table else "",
        )

    def _missing(self, text: str, here: str, todo: list[str], links: list[str]) -> PathFact:
        """Nothing at `here`. What follows is kept as text, unless it would climb back out."""
        rest = [name for name in reversed(todo) if name not in ("", ".")]
        if ".." in rest:
            return _wrong(text, links, f"{here} does not exist, yet `..` follows")
        parent = here[: here.rindex("/")] or "/"
        would_be = "/".join([here, *rest])
        origin = ""
        if self.table:
            origin = self.table.origin(parent).rstrip("/") + would_be[len(parent.rstrip("/")) :]
        chain = self.chain(parent)
        return PathFact(text, "", "missing", -1, -1, 0, 0, 0, tuple(links), "", chain, would_be, origin)

    def chain(self, path: str) -> tuple[Component, ...]:
        """The directories from "/" down to `path`, which is resolved and exists."""
        found = self._chains.get(path)
        if found is None:
            looked = [(up, self._lstat(up)) for up in reversed(ancestors(path))]
            found = tuple(component(up, info) for up, info in looked if not isinstance(info, OSError))
            self._chains[path] = found
        return found

    def _barred(self, folder: str, error: OSError) -> str:
        """Why nothing below `folder` can be seen, with the mode that bars it."""
        why = (error.strerror or str(error)).lower()
        info = self._lstat(folder)
        if isinstance(info, OSError):
            return f"{folder}: {why}"
        mode = stat.filemode(info.st_mode)
        return f"{folder} ({mode}, owner {info.st_uid}:{info.st_gid}): {why}"


def _wrong(text: str, links: list[str], error: str) -> PathFact:
    return PathFact(text, "", "missing", links=tuple(links), error=error)


def resolve(text: str, home: str, base: str = "") -> PathFact:
    """One path by itself, with its place in the file system (`Resolver` is for many)."""
    return Resolver(home, mountinfo.read()).resolve(text, base)


def component(path: str, info: os.stat_result) -> Component:
    return Component(path, info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode), info.st_dev, info.st_ino)


def kind_of(mode: int) -> Kind:
    return next((kind for bits, kind in _KINDS if stat.S_IFMT(mode) == bits), "device")


def named(profile: Profile, base: str) -> list[tuple[str, str]]:
    """Every path that `profile` names, as (text, base); a write root lies below its source."""
    found = []
    if profile.workdir:
        found.append((profile.workdir, base))
        found += [(below(profile.workdir, root), base) for root in profile.write]
    for mount in profile.mounts:
        found.append((mount.source, ""))
        found += [(below(mount.source, root), "") for root in mount.write]
    found += [(override.path, "") for override in profile.overrides]
    return found


def below(source: str, root: str) -> str:
    """The key of a write root among the facts."""
    return f"{source.rstrip('/')}/{root}"


def observe(
    profile: Profile,
    home: str,
    base: str,
    own: Dirs,
    environ: Mapping[str, str] | None = None,
    table: mountinfo.MountTable | None = None,
) -> tuple[PathFact, ...]:
    """Every path the profile names, then every refused one, each once by its text.

    A relative work directory lies below `base`: the policy's directory, or the current one where
    there is no policy. `own` are bawn's directories; `environ` is bawn's own unless given.
    """
    resolver = Resolver(home, table or mountinfo.read())
    facts: dict[str, PathFact] = {}
    for text, below_it in named(profile, base):
        if text not in facts or facts[text].error:
            facts[text] = resolver.resolve(text, below_it)
    environ = os.environ if environ is None else environ
    for key, path in refused.asked(environ, own):
        if key not in facts:
            facts[key] = resolver.resolve(path, text=key)
    return tuple(facts.values())
