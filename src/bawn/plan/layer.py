"""Layers of an image -> what is made on disk. Pure: the names in a layer are judged before any is used.

A layer may come from anybody, so nothing of it reaches the file system unjudged: no way upwards, no
entry below a link or a file, no device, no name twice, no link to what is not there, no whiteout of
more than a name. Every entry is known here by its place, so that whoever makes it follows no link.
https://github.com/opencontainers/image-spec/blob/main/layer.md
"""

from collections.abc import Iterator

from bawn.typed import Literal, NamedTuple

Kind = Literal["dir", "file", "link", "hard", "device", "fifo", "other"]
WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
NAME_MAX, PATH_MAX = 255, 4000  # bytes; room for the directory that it is unpacked to
MAX_ENTRIES = 1_000_000
MAX_DEPTH = 100  # directories in one another: removal is recursive
SPECIAL_BITS = 0o6000  # setuid, setgid


class LayerError(ValueError):
    """An entry that cannot be taken. Says which and why."""


class Member(NamedTuple):
    """One entry of a layer, as it stands there."""

    name: str
    kind: Kind
    mode: int = 0o755
    uid: int = 0
    gid: int = 0
    mtime: int = 0
    size: int = 0
    target: str = ""  # of a link; of a hard link: the other name
    capabilities: bool = False  # it carries file capabilities


class Entry(NamedTuple):
    """One entry of the merged tree. `path` is relative and plain: no "", "." or ".." in it."""

    path: str
    kind: Literal["dir", "file", "link"]
    mode: int
    uid: int
    gid: int
    mtime: int
    target: str = ""


class Remove(NamedTuple):
    """Take away `path` and all below it."""

    path: str


class Make(NamedTuple):
    """Make `entry`: its directory is there, and nothing in its place. A second name of `same`, if given."""

    entry: Entry
    same: str = ""


class Merge:
    """The tree so far. `admit` says what a member changes, in order; whoever asks does it."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.special: list[str] = []  # paths whose setuid, setgid or capabilities were left out
        self.devices: list[str] = []  # device files below /dev that were left out
        self._children: dict[str, set[str]] = {"": set()}
        self._layer = 0
        self._since: dict[str, int] = {}

    def next_layer(self) -> None:
        """What follows is a layer on top: its whiteouts are for what is there now."""
        self._layer += 1

    def admit(self, member: Member) -> list[Remove | Make]:
        """Raises LayerError."""
        path = plain(member.name)
        if path == "":
            if member.kind != "dir":
                raise LayerError("the root of the layer is no directory")
            return []
        directory, name = _split(path)
        if name.startswith(WHITEOUT):
            return list(self._whiteout(directory, name))
        if member.kind in ("device", "other", "fifo"):
            if path.startswith("dev/"):  # the engine makes its own /dev
                self.devices.append(path)
                return []
            raise LayerError(f"{path!r} is a {_WORDS[member.kind]}")
        if len(self.entries) >= MAX_ENTRIES:
            raise LayerError(f"more than {MAX_ENTRIES} entries")
        done: list[Remove | Make] = list(self._parents(directory))
        before = self.entries.get(path)
        if before and before.kind == "dir" and member.kind == "dir":
            done.append(self._set(self._entry(path, member)))  # new mode and owner, the same content
            return done
        same = self._same(path, member) if member.kind == "hard" else ""
        if before:
            if self._since[path] == self._layer:
                raise LayerError(f"{path!r} is there twice")
            self._drop(path)
            done.append(Remove(path))
        entry = self.entries[same]._replace(path=path) if same else self._entry(path, member)
        done.append(self._set(entry)._replace(same=same))
        return done

    def forget(self, path: str) -> None:
        """Leaves out an entry and all below it, whoever asked takes it away on disk."""
        if path in self.entries:
            self._drop(path)

    def _entry(self, path: str, member: Member) -> Entry:
        if member.kind == "link":
            text = _text(member.target, f"the link {path!r}")
            if not text or len(text.encode()) > PATH_MAX:
                raise LayerError(f"the link {path!r} leads to a name that cannot be one")
            return Entry(path, "link", 0o777, member.uid, member.gid, member.mtime, text)
        if member.mode & SPECIAL_BITS or member.capabilities:
            self.special.append(path)
        kind: Literal["dir", "file"] = "dir" if member.kind == "dir" else "file"
        keep = 0o1777 if kind == "dir" else 0o777
        return Entry(path, kind, member.mode & keep, member.uid, member.gid, member.mtime)

    def _same(self, path: str, member: Member) -> str:
        target = plain(member.target)
        found = self.entries.get(target)
        if found is None or found.kind != "file" or target == path or self._inside(target, path):
            raise LayerError(f"{path!r} is a hard link to {member.target!r}, which is no file of this image")
        return target

    def _inside(self, path: str, top: str) -> bool:
        return path.startswith(top + "/")

    def _parents(self, directory: str) -> Iterator[Make]:
        """The directories above, which a layer may leave unsaid."""
        parts = directory.split("/") if directory else []
        for count in range(1, len(parts) + 1):
            above = "/".join(parts[:count])
            found = self.entries.get(above)
            if found is None:
                yield self._set(Entry(above, "dir", 0o755, 0, 0, 0))
            elif found.kind != "dir":
                what = "a link" if found.kind == "link" else "a file"
                raise LayerError(f"{directory!r} leads through {above!r}, which is {what}")
            self._since[above] = self._layer  # this layer has it too: no whiteout of its own hides it

    def _whiteout(self, directory: str, name: str) -> Iterator[Remove]:
        if name == OPAQUE:
            for child in sorted(self._children.get(directory, ())):
                path = f"{directory}/{child}" if directory else child
                yield from self._hide(path)
            return
        hidden = name.removeprefix(WHITEOUT)
        if hidden in ("", ".", "..") or hidden.startswith(WHITEOUT):
            raise LayerError(f"the whiteout {name!r} names nothing")
        yield from self._hide(f"{directory}/{hidden}" if directory else hidden)

    def _hide(self, path: str) -> Iterator[Remove]:
        """Of lower layers only: what this layer itself brought stays."""
        if path not in self.entries:
            return
        if self._since[path] < self._layer:
            self._drop(path)
            yield Remove(path)
            return
        for child in sorted(self._children.get(path, ())):
            yield from self._hide(f"{path}/{child}")

    def _set(self, entry: Entry) -> Make:
        directory, name = _split(entry.path)
        self.entries[entry.path] = entry
        self._since[entry.path] = self._layer
        self._children[directory].add(name)
        if entry.kind == "dir":
            self._children.setdefault(entry.path, set())
        return Make(entry)

    def _drop(self, path: str) -> None:
        for child in list(self._children.get(path, ())):
            self._drop(f"{path}/{child}")
        directory, name = _split(path)
        self._children[directory].discard(name)
        self._children.pop(path, None)
        del self.entries[path], self._since[path]


_WORDS = {"device": "device file", "fifo": "named pipe", "other": "kind of entry that no file system has"}


def plain(name: str) -> str:
    """`name` as a relative path: "./usr//bin/" is "usr/bin", "/" is "". Raises LayerError."""
    parts = [part for part in _text(name, f"the name {name!r}").split("/") if part not in ("", ".")]
    if ".." in parts:
        raise LayerError(f"{name!r} leads upwards")
    path = "/".join(parts)
    if any(len(part.encode()) > NAME_MAX for part in parts) or len(path.encode()) > PATH_MAX:
        raise LayerError(f"{name[:60]!r}... is longer than the kernel allows")
    if len(parts) > MAX_DEPTH:
        raise LayerError(f"{name[:60]!r}... lies deeper than {MAX_DEPTH} directories")
    return path


def _text(text: str, what: str) -> str:
    """Bytes that are no UTF-8 come as lone surrogates: a bundle, which is JSON, could not say them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise LayerError(f"{what} is not UTF-8") from None
    if "\0" in text:
        raise LayerError(f"{what} holds a NUL")
    return text


def _split(path: str) -> tuple[str, str]:
    directory, _, name = path.rpartition("/")
    return directory, name
