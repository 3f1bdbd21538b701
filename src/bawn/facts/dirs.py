"""bawn's own directories: config, state, runtime. XDG Base Directory Specification 0.8.

root's lie outside of any home: the box's file server, which is nobody outside the box, must be able
to walk to the root file system that bawn made for it.
"""

import os
import stat

from bawn.errors import HostError
from bawn.typed import NamedTuple


class Dirs(NamedTuple):
    """Absolute paths. `config` and `state` need not exist; `runtime` is private."""

    config: str
    state: str
    runtime: str


def observe() -> Dirs:
    """Where they are for this user. Raises HostError for a runtime directory that others own."""
    uid = os.getuid()
    home = os.path.expanduser("~")
    config = _xdg("XDG_CONFIG_HOME", f"{home}/.config")
    state = "/var/lib" if uid == 0 else _xdg("XDG_STATE_HOME", f"{home}/.local/state")
    # Never below /tmp: there anybody can be first.
    runtime = "/run/bawn" if uid == 0 else _runtime(f"{home}/.cache") + "/bawn"
    _private(runtime, uid)
    return Dirs(f"{config}/bawn", f"{state}/bawn", runtime)


def working() -> str:
    """The working directory. Raises HostError where it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise HostError("the working directory no longer exists", "cd to another one") from None


def _xdg(name: str, default: str) -> str:
    """The specification: a relative path in these variables is ignored."""
    value = os.environ.get(name, "")
    return value if value.startswith("/") else default


def _runtime(cache: str) -> str:
    """$XDG_RUNTIME_DIR, unless it is mounted noexec: runsc cannot start a box from there."""
    chosen = _xdg("XDG_RUNTIME_DIR", cache)
    try:
        return cache if os.statvfs(chosen).f_flag & os.ST_NOEXEC else chosen
    except OSError:
        return chosen


def _private(path: str, uid: int) -> None:
    """Refuses a runtime directory that somebody else prepared."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or found.st_mode & 0o022:
        raise HostError(
            f"{path} is not a directory of uid {uid} that only it can write "
            f"(owner {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o})",
            f"remove {path}, or set XDG_RUNTIME_DIR",
        )
