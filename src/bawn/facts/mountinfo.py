"""/proc/self/mountinfo: what is mounted where, and where a path really lies.

`origin` is the answer to bind mounts: two paths are the same place when file system and path in
it are the same, whatever they are called. Format: proc(5), proc_pid_mountinfo(5).
"""

import re
from bisect import bisect_left

from bawn.errors import HostError
from bawn.policy.pathtext import ancestors
from bawn.typed import NamedTuple

_OCTAL = re.compile(r"\\([0-7]{3})")


class MountEntry(NamedTuple):
    id: int
    parent: int
    device: str  # "major:minor"
    root: str  # the directory of the file system that is mounted
    point: str
    options: tuple[str, ...]  # of this mount
    fstype: str
    source: str
    super_options: tuple[str, ...]  # of the file system

    @property
    def read_only(self) -> bool:
        return "ro" in self.options or "ro" in self.super_options


def parse(text: str) -> tuple[MountEntry, ...]:
    """The entries that can be seen, in the order of the file.

    A mount that another one covers is left out. Raises HostError for a line that is not one.
    """
    entries = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if not dash or len(fields) < 6 or len(rest) < 3 or not fields[0].isdigit():
            raise HostError(f"/proc/self/mountinfo has a line that is no mount: {line!r}")
        entries.append(
            MountEntry(
                int(fields[0]),
                int(fields[1]),
                fields[2],
                _decode(fields[3]),
                _decode(fields[4]),
                tuple(fields[5].split(",")),
                rest[0],
                _decode(rest[1]),
                tuple(rest[2].split(",")),
            )
        )
    return _visible(entries)


def _decode(text: str) -> str:
    """Space, tab, newline and backslash are written as octal escapes."""
    if "\\" not in text:
        return text
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)


def _visible(entries: list[MountEntry]) -> tuple[MountEntry, ...]:
    """Without those that a mount on the same point, or above, covers: it is not their ancestor."""
    by_id = {entry.id: entry for entry in entries}
    at: dict[str, list[MountEntry]] = {}
    for entry in entries:
        at.setdefault(entry.point, []).append(entry)
    found = []
    for entry in entries:
        line = set()
        above: MountEntry | None = entry
        while above and above.id not in line:
            line.add(above.id)
            above = by_id.get(above.parent)
        over = (other for point in ancestors(entry.point) for other in at.get(point, ()))
        if all(other.id in line for other in over):
            found.append(entry)
    return tuple(found)


class MountTable:
    """The mounts of this process, for questions about many paths."""

    def __init__(self, entries: tuple[MountEntry, ...]) -> None:
        self._at = {entry.point: entry for entry in entries}
        self._points = sorted(self._at)
        self._origins: dict[str, str] = {}

    def origin(self, path: str) -> str:
        """Where `path` (absolute, resolved) really lies: "major:minor/path/in/file system"."""
        origin = ""
        for up in reversed(ancestors(path)):
            found = self._origins.get(up)
            if found is None:
                entry = self._at.get(up)
                if entry:
                    found = f"{entry.device}{entry.root}"
                else:
                    found = f"{origin.rstrip('/')}{up[up.rindex('/') :]}" if origin else ""
                self._origins[up] = found
            origin = found
        return origin

    def below(self, path: str) -> list[MountEntry]:
        """Mounts strictly below `path`, by mount point."""
        prefix = path.rstrip("/") + "/"
        at = bisect_left(self._points, prefix)
        found = []
        while at < len(self._points) and self._points[at].startswith(prefix):
            if self._points[at] != path:
                found.append(self._at[self._points[at]])
            at += 1
        return found


def read() -> MountTable:
    """The table of this process. Raises HostError where it cannot be read."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return MountTable(parse(file.read()))
    except OSError as error:
        raise HostError(
            f"/proc/self/mountinfo cannot be read: {error.strerror}", "mount /proc and try again"
        ) from None
