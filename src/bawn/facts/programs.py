"""Programs that are a part of the wall are taken only from where no agent can write."""

import os
import stat

SYSTEM = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin")


def find(name: str, path: str) -> str:
    """The program `name`, resolved: of the system's own directories, else of PATH; "" for none.

    Only what root alone can change counts: an activated virtual environment puts a directory that
    agents write at the front of PATH.
    """
    for directory in (*SYSTEM, *path.split(":")):
        candidate = f"{directory}/{name}"
        if directory.startswith("/") and os.access(candidate, os.X_OK):
            real = os.path.realpath(candidate)
            if _of_root(candidate) and _of_root(real):
                return real
    return ""


def _of_root(path: str) -> bool:
    """Root owns it and every directory above, and nobody else can write there (a sticky directory
    lets nobody replace what is root's)."""
    while True:
        try:
            info = os.lstat(path)
        except OSError:
            return False
        loose = info.st_mode & 0o022 and not info.st_mode & stat.S_ISVTX and not stat.S_ISLNK(info.st_mode)
        if info.st_uid != 0 or loose:
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)
