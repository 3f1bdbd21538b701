"""What git's pointer files say, read without git: bawn never runs git where an agent can write.

All of it may be an agent's text, so reads are bounded, follow no link in the last component and
never block; what a pointer claims counts only where the other end names it in return.
"""

import os
import stat

from bawn.facts.model import GitFile

MAX_POINTER = 4096  # bytes: a gitfile holds one path, and PATH_MAX is 4096
MAX_CONFIG = 1 << 16


def read(path: str, limit: int, dir_fd: int | None = None) -> str:
    """The text of a regular file, "" where it is none, cannot be read or is longer than `limit`."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, dir_fd=dir_fd)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        data = os.read(fd, limit + 1)
    except OSError:
        return ""
    finally:
        os.close(fd)
    return "" if len(data) > limit else os.fsdecode(data)


def pointed(path: str, text: str) -> GitFile:
    """What the `.git` file at `path` with that text points to."""
    to = text.removeprefix("gitdir:").strip() if text.startswith("gitdir:") else ""
    return _follow(path, _join(os.path.dirname(path), to) if to and "\0" not in to else "")


def linked(path: str) -> GitFile:
    """The same for a `.git` that is a symbolic link."""
    return _follow(path, path)


def _follow(path: str, to: str) -> GitFile:
    gitdir = _directory(to)
    if not gitdir:
        return GitFile(path, "", "", False)
    back = read(gitdir + "/gitdir", MAX_POINTER).strip()
    common = read(gitdir + "/commondir", MAX_POINTER).strip()
    if common:
        known = bool(back) and _same(_join(gitdir, back), path)
        return GitFile(path, gitdir, _directory(_join(gitdir, common)), known)
    worktree = _value(read(gitdir + "/config", MAX_CONFIG), "core", "worktree")
    known = bool(worktree) and _same(_join(gitdir, worktree[0]), os.path.dirname(path))
    return GitFile(path, gitdir, gitdir, known)


def _join(base: str, path: str) -> str:
    return path if path.startswith("/") else f"{base}/{path}"


def _directory(path: str) -> str:
    """`path` resolved, "" where it is no directory."""
    if not path or "\0" in path:
        return ""
    try:
        found = os.path.realpath(path, strict=True)
    except OSError:
        return ""
    return found if os.path.isdir(found) else ""


def _same(one: str, other: str) -> bool:
    return "\0" not in one and os.path.realpath(one) == os.path.realpath(other)


def obeyed(config: str, gitdir: str) -> list[str]:
    """Paths that the text of `gitdir`/config makes git run or read as config, unresolved."""
    top = os.path.dirname(gitdir) if os.path.basename(gitdir) == ".git" else gitdir
    hooks = [_join(top, path) for path in _value(config, "core", "hookspath")]
    more = [
        _join(gitdir, path)
        for section in ("include", "includeif")
        for path in _value(config, section, "path")
    ]
    return [path for path in (*hooks, *more) if "\0" not in path]


def _value(config: str, section: str, key: str) -> list[str]:
    """Every value of section.key in a git config, subsections too (git-config(1), syntax)."""
    found, inside = [], False
    for line in config.splitlines():
        line = line.strip()
        if line.startswith("["):
            head, _, line = line[1:].partition("]")
            inside = head.split(" ")[0].split('"')[0].strip().lower() == section
            line = line.strip()
        name, equals, value = line.partition("=")
        if inside and equals and name.strip().lower() == key:
            found.append(value.strip().strip('"'))
    return [value for value in found if value]
