"""Layers as files: read from tar, made on disk, written as one layer that is the same every time.

Python's tarfile reads the archive, and nothing of it writes: `plan.layer` judges each name, and what
it allows is made here, below a directory that only bawn can write. (tarfile's `data` filter alone
knows neither whiteouts nor doubled names, and follows the links that an earlier layer left. umoci
and skopeo would do it, but are not on most machines; skopeo of Debian 12 is of 2022.)
"""

import gzip
import hashlib
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import IO

from bawn.effects.remove import remove_tree
from bawn.errors import HostError
from bawn.plan.layer import Entry, Kind, LayerError, Make, Member, Merge, Remove, plain
from bawn.typed import Any, NamedTuple

LIMIT = 16 << 30  # bytes that an image may become
_HEADER = 1 << 20  # bytes of one extended header: tarfile reads it into memory
_SPARE = 1 << 30  # bytes that stay free on the disk
_CHUNK = 1 << 20
_KINDS: dict[bytes, Kind] = {
    tarfile.REGTYPE: "file", tarfile.AREGTYPE: "file", tarfile.CONTTYPE: "file",
    tarfile.GNUTYPE_SPARSE: "file", tarfile.DIRTYPE: "dir", tarfile.SYMTYPE: "link",
    tarfile.LNKTYPE: "hard", tarfile.CHRTYPE: "device", tarfile.BLKTYPE: "device",
    tarfile.FIFOTYPE: "fifo",
}  # fmt: skip


class Digest(NamedTuple):
    """sha256 as OCI writes it, and bytes."""

    digest: str
    size: int


class _Header(tarfile.TarInfo):
    """tarfile takes a damaged header for the end of the archive, and any size for a size."""

    @classmethod
    def fromtarfile(cls, tarfile: Any) -> "_Header":  # tarfile's own name of the argument
        try:
            return super().fromtarfile(tarfile)
        except _BROKEN as error:
            raise LayerError(f"the archive is damaged: {error or 'it ends too early'}") from None

    def _proc_member(self, tar: Any) -> Any:
        extended = self.type in (*_EXTENDED, tarfile.XGLTYPE)
        if self.size < 0 or (extended and self.size > _HEADER):
            raise LayerError(f"a header of {self.size} bytes")
        return super()._proc_member(tar)  # type: ignore[misc]


_EXTENDED = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_BROKEN = (
    tarfile.InvalidHeaderError,  # type: ignore[attr-defined]
    tarfile.TruncatedHeaderError,  # type: ignore[attr-defined]
    tarfile.EmptyHeaderError,  # type: ignore[attr-defined]  # it ends without its end mark
)


class _Counted:
    """Reads, counts and hashes; ends what grows beyond `room`."""

    def __init__(self, stream: IO[bytes], room: int) -> None:
        self._stream, self._room = stream, room
        self.size, self.sha = 0, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(min(size, _CHUNK) if size >= 0 else _CHUNK)
        self.size += len(data)
        if self.size > self._room:
            raise LayerError(f"it becomes larger than {self._room} bytes")
        self.sha.update(data)
        return data

    def drain(self) -> Digest:
        while self.read(_CHUNK):
            pass
        return Digest(f"sha256:{self.sha.hexdigest()}", self.size)


class Tree:
    """A directory that layers are unpacked into, one after another. Nobody else may write below it."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.merge = Merge()
        free = os.statvfs(os.path.dirname(root))
        self._room = max(0, min(LIMIT, free.f_bavail * free.f_frsize - _SPARE))
        os.mkdir(root, 0o700)

    def unpack(self, stream: IO[bytes], leave: Callable[[str], bool] = lambda path: False) -> Digest:
        """One layer on top, without the paths that `leave` names; the digest of the plain archive.

        Raises LayerError for what cannot be taken, OSError.
        """
        self.merge.next_layer()
        counted = _Counted(plain_stream(stream), self._room)
        try:
            with tarfile.open(fileobj=counted, mode="r|", tarinfo=_Header, errorlevel=2,  # type: ignore[call-overload]
                              encoding="utf-8", errors="surrogateescape") as archive:  # fmt: skip
                while (info := archive.next()) is not None:
                    archive.members = []  # it would keep them all
                    self._take(archive, info, leave)
            digest = counted.drain()
        except (tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile, RecursionError, OverflowError,
                ValueError) as error:  # fmt: skip
            if isinstance(error, LayerError):
                raise
            raise LayerError(f"the archive is damaged: {error}") from None
        self._room -= digest.size
        return digest

    def _take(self, archive: tarfile.TarFile, info: tarfile.TarInfo, leave: Callable[[str], bool]) -> None:
        member = member_of(info)
        if leave(plain(member.name)):
            return
        for step in self.merge.admit(member):
            self._do(step, archive.extractfile(info) if member.kind == "file" else None, info.size)

    def _do(self, step: Remove | Make, content: IO[bytes] | None, size: int) -> None:
        if isinstance(step, Remove):
            path = f"{self.root}/{step.path}"
            if os.path.isdir(path) and not os.path.islink(path):
                remove_tree(path)
            else:
                os.unlink(path)
            return
        entry, path = step.entry, f"{self.root}/{step.entry.path}"
        if step.same:
            os.link(f"{self.root}/{step.same}", path, follow_symlinks=False)
        elif entry.kind == "dir":
            if not os.path.isdir(path):
                os.mkdir(path, 0o700)
        elif entry.kind == "link":
            os.symlink(entry.target, path)
        else:
            if size > self._room:
                raise LayerError(f"{entry.path!r} is {size} bytes")
            with open(path, "xb", opener=_private) as file:
                if content:
                    shutil.copyfileobj(content, file, _CHUNK)

    def add(self, entry: Member, text: str | None = None) -> None:
        """One entry of bawn's own, in place of what is there."""
        self.merge.next_layer()
        for step in self.merge.admit(entry):
            self._do(step, None, 0)
        if text is not None:
            with open(f"{self.root}/{entry.name}", "wb") as file:
                file.write(text.encode())

    def text(self, path: str) -> str:
        """What a file of the tree says; "" where it is no file, or a link."""
        if path not in self.merge.entries or self.merge.entries[path].kind != "file":
            return ""
        with open(f"{self.root}/{path}", errors="replace") as file:
            return file.read()

    def adopt(self, directory: str, below: str, leave: Callable[[str], bool]) -> None:
        """Moves a directory of this machine (npm's) into the tree, at `below`; owned by root there."""
        self.merge.next_layer()
        for step in self.merge.admit(Member(below, "dir")):
            self._do(step, None, 0)
        os.rmdir(f"{self.root}/{below}")
        os.rename(directory, f"{self.root}/{below}")
        for at, directories, files in os.walk(f"{self.root}/{below}"):
            relative = at.removeprefix(f"{self.root}/")
            for name in sorted([*directories, *files]):
                self._adopt(f"{relative}/{name}", leave)
            directories[:] = [name for name in directories if f"{relative}/{name}" in self.merge.entries]

    def _adopt(self, path: str, leave: Callable[[str], bool]) -> None:
        real = f"{self.root}/{path}"
        info = os.lstat(real)
        is_dir = os.path.isdir(real) and not os.path.islink(real)
        if leave(path):
            remove_tree(real) if is_dir else os.unlink(real)
            return
        link = os.path.islink(real)
        if not (is_dir or link or os.path.isfile(real)):
            raise LayerError(f"{path!r} is neither a file nor a directory")
        mode = 0o755 if is_dir or info.st_mode & 0o100 else 0o644
        kind: Kind = "dir" if is_dir else "link" if link else "file"
        target = os.readlink(real) if link else ""
        self.merge.admit(Member(path, kind, mode, 0, 0, int(info.st_mtime), target=target))
        if is_dir:
            os.chmod(real, 0o700)

    def finish(self, epoch: int) -> None:
        """Modes and times, once everything is there."""
        entries = self.merge.entries
        for path in sorted(entries, reverse=True):
            entry = entries[path]
            entries[path] = entry = entry._replace(mtime=max(0, min(entry.mtime, epoch)))
            if entry.kind != "link":
                os.chmod(f"{self.root}/{path}", disk_mode(entry))
            os.utime(f"{self.root}/{path}", (entry.mtime, entry.mtime), follow_symlinks=False)
        os.chmod(self.root, 0o755)
        os.utime(self.root, (epoch, epoch))


def disk_mode(entry: Entry) -> int:
    """Its mode on this machine: nobody but the owner writes here, and the owner can read it all. Where the
    owner is an ordinary user, that user is root in the box, as it would be."""
    return entry.mode & 0o755 | (0o700 if entry.kind == "dir" else 0o400)


def member_of(info: tarfile.TarInfo) -> Member:
    """tarfile's value as ours. A size or a time in a header is any number."""
    attributes = info.pax_headers
    return Member(
        info.name, _KINDS.get(info.type, "other"), info.mode & 0o7777, _small(info.uid), _small(info.gid),
        min(max(int(info.mtime), 0), 1 << 33), info.size, info.linkname,
        any(name.endswith("security.capability") for name in attributes),
    )  # fmt: skip


def _small(number: int) -> int:
    if not 0 <= number < 1 << 31:
        raise LayerError(f"an owner with the number {number}")
    return number


def plain_stream(stream: IO[bytes]) -> IO[bytes]:
    """The archive without its compression. Raises LayerError for one that Python cannot read."""
    head = stream.read(4)
    stream.seek(0)
    if head[:2] == b"\x1f\x8b":
        return gzip.GzipFile(fileobj=stream)  # type: ignore[return-value]
    if head == b"\x28\xb5\x2f\xfd":
        raise LayerError("the layer is compressed by zstd; save it with gzip")
    return stream


def write_layer(root: str, entries: Mapping[str, Entry], target: str) -> Digest:
    """The tree as one plain tar: sorted, in pax format, with the names and times of `entries`."""
    first: dict[tuple[int, int], str] = {}
    with open(target, "xb", opener=_private) as file:
        out = _Hashed(file)
        with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_CHUNK) as archive:  # type: ignore[call-overload]
            for path in sorted(entries):
                entry, real = entries[path], f"{root}/{path}"
                info = tarfile.TarInfo(path)
                info.mode, info.uid, info.gid, info.mtime = entry.mode, entry.uid, entry.gid, entry.mtime
                if entry.kind != "file":
                    info.type = tarfile.DIRTYPE if entry.kind == "dir" else tarfile.SYMTYPE
                    info.linkname = entry.target
                    archive.addfile(info)
                    continue
                with open(real, "rb", opener=_no_link) as content:
                    found = os.fstat(content.fileno())
                    earlier = first.setdefault((found.st_dev, found.st_ino), path)
                    if earlier != path:
                        info.type, info.linkname = tarfile.LNKTYPE, earlier
                        archive.addfile(info)
                    else:
                        info.size = found.st_size
                        archive.addfile(info, content)
    return out.digest()


class _Hashed:
    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._sha, self._size = file, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        self._sha.update(data)
        self._size += len(data)
        return self._file.write(data)

    def digest(self) -> Digest:
        return Digest(f"sha256:{self._sha.hexdigest()}", self._size)


def compare(root: str, layer: str) -> list[str]:
    """What of the tree on disk differs from the layer it was unpacked from; [] for nothing."""
    wrong: list[str] = []
    seen: set[str] = set()
    with tarfile.open(layer, "r:", tarinfo=_Header) as archive:
        while (info := archive.next()) is not None:
            archive.members = []  # type: ignore[attr-defined]
            seen.add(info.name)
            wrong += _differs(f"{root}/{info.name}", root, archive, info)
    extra = [path for path in _walk(root) if path not in seen]
    return wrong + [f"/{path}: not in the image" for path in sorted(extra)]


def _differs(real: str, root: str, archive: tarfile.TarFile, info: tarfile.TarInfo) -> list[str]:
    try:
        found = os.lstat(real)
    except OSError:
        return [f"/{info.name}: missing"]
    kinds = {tarfile.DIRTYPE: 0o040000, tarfile.SYMTYPE: 0o120000}
    if found.st_mode & 0o170000 != kinds.get(info.type, 0o100000):
        return [f"/{info.name}: another kind of file"]
    if info.issym():
        return [] if os.readlink(real) == info.linkname else [f"/{info.name}: leads elsewhere"]
    kind: Any = "dir" if info.isdir() else "file"
    if found.st_mode & 0o7777 != disk_mode(Entry(info.name, kind, info.mode, 0, 0, 0)):
        return [f"/{info.name}: mode {found.st_mode & 0o7777:04o}"]
    if info.islnk():
        same = os.path.samefile(real, f"{root}/{info.linkname}")
        return [] if same else [f"/{info.name}: no longer one file with /{info.linkname}"]
    if info.isdir():
        return []
    wanted = archive.extractfile(info)
    assert wanted is not None
    with open(real, "rb", opener=_no_link) as file:
        while True:
            ours, theirs = file.read(_CHUNK), wanted.read(_CHUNK)
            if ours != theirs:
                return [f"/{info.name}: other content"]
            if not ours:
                return []


def _walk(root: str) -> Iterable[str]:
    for at, directories, files in os.walk(root):
        for name in [*directories, *files]:
            yield f"{at}/{name}".removeprefix(f"{root}/")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def file_digest(path: str) -> Digest:
    """Raises HostError for what cannot be read."""
    try:
        with open(path, "rb", opener=_no_link) as file:
            counted = _Counted(file, LIMIT)
            return counted.drain()
    except OSError as error:
        raise HostError(f"cannot read {path}: {error.strerror}") from None
