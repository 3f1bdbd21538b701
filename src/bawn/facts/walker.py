"""The walk itself: every directory of some trees listed once, and every name asked about.

The tree may be an agent's work, so the walk follows no link (each directory is opened relative to
its parent's descriptor), holds few descriptors however deep it goes, and says what it could not
look into. A name is looked at twice only if a gate of dictionary lookups lets it through: what an
entry costs does not depend on the number of masks.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice

from bawn.facts import gitdir
from bawn.facts.model import (
    PLAIN_FILESYSTEMS,
    Component,
    Find,
    FindKind,
    GitFile,
    Submount,
    TreeFact,
)
from bawn.facts.mountinfo import MountTable
from bawn.facts.paths import component
from bawn.policy import host_exec
from bawn.policy.pathtext import within
from bawn.policy.patterns import Matcher, Names, normal

PATH_MAX = 4096  # bytes, the final NUL included: no longer path can be mounted
MAX_OPEN = 64  # descriptors held by one walk; deeper, the upper ones are closed and found again
_PROBE = 64  # names that are tried to find out whether a directory ignores case
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_GIT = frozenset((host_exec.GIT_HEAD, *host_exec.GIT_MARKS, *host_exec.GIT_FILES))
_WATCHED = frozenset((".git", host_exec.POLICY_NAME, *_GIT))
_FOLDED = {normal(name, True): name for name in _WATCHED}
_SPECIAL: dict[int, FindKind] = {stat.S_IFSOCK: "socket", stat.S_IFIFO: "fifo"}

Masks = tuple[tuple[str, str], ...]  # (directory, pattern that holds below it)
CaseProbe = Callable[[int, list[os.DirEntry[str]]], bool | None]


def detect_casefold(fd: int, entries: list[os.DirEntry[str]]) -> bool | None:
    """Whether an entry answers to its name in the other case. None: no name has a letter."""
    for entry in entries:
        other = entry.name.swapcase()
        if other != entry.name:
            try:
                return os.stat(other, dir_fd=fd, follow_symlinks=False).st_ino == entry.inode()
            except OSError:
                return False
    return None


class _Tree:
    """What is being collected for one source."""

    def __init__(self, source: str, masks: Masks) -> None:
        self.source = source
        self.masks = masks
        self.finds: dict[str, Find] = {}
        self.entries = 0
        self.unreadable: list[Component] = []
        self.casefold = False
        self.gitfiles: list[GitFile] = []
        self.too_deep: list[str] = []

    def add(self, find: Find) -> None:
        """A mask stands above everything else that a path may be."""
        if find.kind == "mask" or find.path not in self.finds:
            self.finds[find.path] = find

    def fact(self, submounts: tuple[Submount, ...]) -> TreeFact:
        return TreeFact(
            self.source,
            tuple(sorted(self.finds.values(), key=lambda find: find.path)),
            self.entries,
            tuple(sorted(self.unreadable)),
            self.casefold,
            submounts,
            self.masks,
            tuple(sorted(self.gitfiles)),
            tuple(sorted(self.too_deep)),
        )


class _Questions:
    """What is asked of the names in one tree, compiled, with the gate that most names fail."""

    def __init__(self, masks: Masks, casefold: bool) -> None:
        self.casefold = casefold
        by_base: dict[str, list[str]] = {}
        for base, pattern in masks:
            by_base.setdefault(base, []).append(pattern)
        self.masks = [(base, Matcher(patterns, casefold)) for base, patterns in by_base.items()]
        self.host = host_exec.matcher(casefold)
        self.everywhere = [matcher.names for _, matcher in self.masks]
        always = [*self.everywhere, self.host.names]
        self.lits = _WATCHED.union(*(names.literal for names in always))
        self.heads = frozenset[str]().union(*(names.heads for names in always))
        self.tails = frozenset[str]().union(*(names.tails for names in always))
        self.all = casefold or any(names.any or names.rest for names in always)
        self.foreign = any(not pattern.isascii() for _, pattern in masks)

    def enter(self, path: str, source: str) -> tuple[list[Names], Names | None]:
        """What patterns with a slash ask in the directory `path`: masks, and the host's table."""
        masks = []
        for base, matcher in self.masks:
            names = matcher.enter(path[len(base) :].lstrip("/"))
            if names:
                masks.append(names)
        return masks, self.host.enter(path[len(source) :].lstrip("/"))


class _Frame:
    """A directory on the way down, and those of its directories that are still to be walked."""

    __slots__ = ("fd", "ident", "path", "questions", "todo", "tree")

    def __init__(self, fd: int, path: str, tree: _Tree, questions: _Questions | None) -> None:
        self.fd = fd
        self.path = path
        self.tree = tree
        self.questions = questions
        self.todo: list[str] = []
        self.ident: tuple[int, int] = (0, 0)


class Walker:
    """Walks trees; `roots` are all mount sources with the masks that hold in each."""

    def __init__(self, roots: Mapping[str, Masks], table: MountTable, probe: CaseProbe) -> None:
        self.roots = roots
        self.table = table
        self.probe = probe
        self.trees: dict[str, _Tree] = {}
        self.points: dict[str, str] = {}  # submounts below what is being walked: file system type

    def run(self, top: str) -> None:
        """Walks `top` and every nested root below it."""
        self.points = {entry.point: entry.fstype for entry in self.table.below(top)}
        frames: list[_Frame] = []
        try:
            self._descend(frames, -1, top, top)
            while frames:
                frame = frames[-1]
                if frame.todo:
                    name = frame.todo.pop()
                    self._descend(frames, frame.fd, name, f"{frame.path.rstrip('/')}/{name}")
                    continue
                frames.pop()
                if frames and frames[-1].fd < 0:
                    self._reopen(frames[-1], frame.fd)
                os.close(frame.fd)
                frame.fd = -1
        finally:
            for frame in frames:
                if frame.fd >= 0:
                    os.close(frame.fd)

    def _context(self, above: _Frame | None, path: str) -> tuple[_Tree, _Questions | None]:
        """The tree that `path` belongs to; questions are None where case has to be probed anew."""
        if above and path not in self.roots:
            return above.tree, None if path in self.points else above.questions
        tree = self.trees[path] = _Tree(path, self.roots[path])
        return tree, None

    def _descend(self, frames: list[_Frame], parent: int, name: str, path: str) -> None:
        above = frames[-1] if frames else None
        fstype = self.points.get(path)
        if fstype and fstype not in PLAIN_FILESYSTEMS:
            return  # the plan refuses it, from mountinfo
        tree, questions = self._context(above, path)
        if len(path) > PATH_MAX // 4 and len(os.fsencode(path)) >= PATH_MAX:
            tree.too_deep.append(path)
            return
        try:
            fd = os.open(name, _OPEN, dir_fd=parent if parent >= 0 else None)
        except FileNotFoundError:
            return  # gone since it was listed
        except OSError:
            _unreadable(tree, parent, name, path)
            return
        frame = _Frame(fd, path, tree, questions)
        frames.append(frame)
        if len(frames) > MAX_OPEN and frames[-MAX_OPEN].fd >= 0:
            _let_go(frames[-MAX_OPEN])
        try:
            with os.scandir(fd) as entries:
                self._list(frame, entries)
        except OSError:
            frame.todo.clear()
            _unreadable(tree, parent, name, path)

    def _reopen(self, frame: _Frame, child: int) -> None:
        """Finds a directory that was let go again, as the parent of its child, or it has moved."""
        try:
            fd = os.open("..", _OPEN, dir_fd=child)
        except OSError:
            fd = -1
        if fd >= 0:
            info = os.fstat(fd)
            if (info.st_dev, info.st_ino) == frame.ident:
                frame.fd = fd
                return
            os.close(fd)
        frame.fd = os.open("/", _OPEN)  # holds the place; nothing below it is asked for
        for name in frame.todo:
            frame.tree.unreadable.append(Component(f"{frame.path}/{name}", -1, -1, 0, 0, 0))
        frame.todo.clear()

    def _list(self, frame: _Frame, entries: Iterator[os.DirEntry[str]]) -> None:
        tree, questions = frame.tree, frame.questions
        if questions is None:
            first = list(islice(entries, _PROBE))
            casefold = self.probe(frame.fd, first)
            if casefold is None:
                casefold = _answers_to_other_case(frame.path)
            tree.casefold |= casefold
            frame.questions = questions = _Questions(tree.masks, casefold)
            entries = chain(first, entries)
        masks, host = questions.enter(frame.path, tree.source)
        lits, heads, tails = questions.lits, questions.heads, questions.tails
        every = bool(questions.all or masks or host)
        foreign = questions.foreign
        todo = frame.todo
        git: dict[str, os.DirEntry[str]] = {}
        count = 0
        for entry in entries:
            count += 1
            name = entry.name
            if (
                every
                or name in lits
                or name[0] in heads
                or name[-1] in tails
                or (foreign and not name.isascii())
            ):
                key = normal(name, questions.casefold)
                hidden = _first(questions.everywhere, key) or _first(masks, key)
                if hidden:
                    self._masked(frame, entry, hidden)
                    continue
                known = _FOLDED.get(key) if questions.casefold else key
                if known in _GIT:
                    git[known] = entry
                elif known in _WATCHED:
                    self._watched(frame, entry, known)
                pattern = questions.host.names.match(key) or (host and host.match(key))
                if pattern:
                    self._host(frame, entry, host_exec.HOST_EXEC[pattern])
            if entry.is_file(follow_symlinks=False):
                continue
            if entry.is_dir(follow_symlinks=False):
                todo.append(name)
            elif not entry.is_symlink():
                self._special(frame, entry)
        tree.entries += count
        if git:
            self._git(frame, git)

    def _path(self, frame: _Frame, entry: os.DirEntry[str]) -> str:
        return f"{frame.path.rstrip('/')}/{entry.name}"

    def _masked(self, frame: _Frame, entry: os.DirEntry[str], pattern: str) -> None:
        path = self._path(frame, entry)
        if entry.is_symlink():
            target, is_dir = _target(path)
            frame.tree.add(Find("mask", path, is_dir, target, pattern))
            return
        try:
            info = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return  # gone since it was listed
        is_dir = stat.S_ISDIR(info.st_mode)
        frame.tree.add(Find("mask", path, is_dir, "", pattern, 1 if is_dir else info.st_nlink))

    def _host(self, frame: _Frame, entry: os.DirEntry[str], why: str, kind: FindKind = "host-exec") -> None:
        path = self._path(frame, entry)
        target, is_dir = "", entry.is_dir(follow_symlinks=False)
        if entry.is_symlink():
            target, is_dir = _target(path)
        frame.tree.add(Find(kind, path, is_dir, target, why, ino=entry.inode()))

    def _watched(self, frame: _Frame, entry: os.DirEntry[str], key: str) -> None:
        """A bawn.toml, or a `.git` that is no directory."""
        if key != ".git":
            self._host(frame, entry, "it is a policy of bawn", "policy")
        elif entry.is_symlink():
            self._host(frame, entry, host_exec.GIT_POINTER, "gitfile")
            frame.tree.gitfiles.append(gitdir.linked(self._path(frame, entry)))
        elif entry.is_file(follow_symlinks=False):
            self._host(frame, entry, host_exec.GIT_POINTER, "gitfile")
            text = gitdir.read(entry.name, gitdir.MAX_POINTER, frame.fd)
            frame.tree.gitfiles.append(gitdir.pointed(self._path(frame, entry), text))

    def _git(self, frame: _Frame, git: dict[str, os.DirEntry[str]]) -> None:
        """The files git obeys, where the directory is one of git's."""
        own = normal(frame.path.rpartition("/")[2], frame.tree.casefold) == ".git"
        if not own and not (host_exec.GIT_HEAD in git and any(mark in git for mark in host_exec.GIT_MARKS)):
            return
        for key, why in host_exec.GIT_FILES.items():
            if key in git:
                self._host(frame, git[key], why)
        if "config" not in git:
            return
        text = gitdir.read(git["config"].name, gitdir.MAX_CONFIG, frame.fd)
        for named in gitdir.obeyed(text, frame.path):
            path = os.path.realpath(named)
            inside = within(path, frame.tree.source) and path != frame.tree.source
            if inside and os.path.lexists(path):
                is_dir = os.path.isdir(path)
                frame.tree.add(Find("host-exec", path, is_dir, "", host_exec.GIT_NAMED))

    def _special(self, frame: _Frame, entry: os.DirEntry[str]) -> None:
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
        except FileNotFoundError:
            return  # gone since it was listed
        kind = _SPECIAL.get(stat.S_IFMT(mode), "device")
        frame.tree.add(Find(kind, self._path(frame, entry), False))


def _first(several: list[Names], key: str) -> str | None:
    for names in several:
        found = names.match(key)
        if found:
            return found
    return None


def _target(path: str) -> tuple[str, bool]:
    """Where the link at `path` leads, resolved ("?": nowhere), and whether to a directory."""
    try:
        target = os.path.realpath(path, strict=True)
        return target, os.path.isdir(target)
    except OSError:
        return "?", False


def _answers_to_other_case(path: str) -> bool:
    above, _, name = path.rpartition("/")
    other = name.swapcase()
    if other == name:
        return False
    try:
        one, two = os.stat(path), os.stat(f"{above}/{other}")
    except OSError:
        return False
    return (one.st_dev, one.st_ino) == (two.st_dev, two.st_ino)


def _unreadable(tree: _Tree, parent: int, name: str, path: str) -> None:
    try:
        info = os.stat(name, dir_fd=parent if parent >= 0 else None, follow_symlinks=False)
    except FileNotFoundError:
        return
    except OSError:
        tree.unreadable.append(Component(path, -1, -1, 0, 0, 0))
    else:
        tree.unreadable.append(component(path, info))


def _let_go(frame: _Frame) -> None:
    info = os.fstat(frame.fd)
    frame.ident = (info.st_dev, info.st_ino)
    os.close(frame.fd)
    frame.fd = -1
