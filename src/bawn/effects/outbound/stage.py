"""Staged copies: what may leave, copied from the descriptor that was judged, for a gateway that takes
paths. Each lies alone in a private directory under its own name, and goes on request or by age.

    STATE/outbound/<32 hex digits>/report.pdf      0700, 0400
"""

import os
import re
import secrets
import stat
import time
from contextlib import suppress

from bawn.errors import HostError
from bawn.outbound.model import Verdict
from bawn.typed import NamedTuple

MAX_AGE = 3600.0  # seconds; an upload that takes longer has its own copy by then
_TOKEN = re.compile(r"[0-9a-f]{32}")
_CHUNK = 1 << 20
_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Staged(NamedTuple):
    """`token` names the copy when it is to be removed. Both are "" where the file is denied."""

    verdict: Verdict
    token: str = ""
    path: str = ""


class Stage:
    """The directory of copies below bawn's state. Raises HostError where it is not private."""

    def __init__(self, state: str) -> None:
        self.top = f"{state}/outbound"
        self._fd = -1
        try:
            os.makedirs(state, mode=0o700, exist_ok=True)
            with suppress(FileExistsError):
                os.mkdir(self.top, 0o700)
            self._fd = os.open(self.top, _DIR)
            info = os.fstat(self._fd)
        except OSError as error:
            raise HostError(f"cannot stage in {self.top}: {error.strerror}") from None
        if info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & 0o077:
            raise HostError(f"{self.top} is not private", f"chmod 700 {self.top}")

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def copy(self, verdict: Verdict, source: int, limit: int) -> Staged:
        """A copy of the open file `source`, at most `limit` bytes; denied where it changes meanwhile.

        Raises HostError where the copy cannot be written.
        """
        token = secrets.token_hex(16)
        name = os.path.basename(verdict.path)
        try:
            os.mkdir(token, 0o700, dir_fd=self._fd)
            folder = os.open(token, _DIR, dir_fd=self._fd)
            try:
                fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400, dir_fd=folder)
                try:
                    count = _copied(source, fd, limit)
                finally:
                    os.close(fd)
            finally:
                os.close(folder)
        except OSError as error:
            self.remove(token)
            raise HostError(f"cannot stage {verdict.path}: {error.strerror}") from None
        if count != verdict.size or os.fstat(source).st_size != count:
            self.remove(token)
            reason = f"{verdict.asked} changed while it was being read: {verdict.size} bytes became others"
            return Staged(verdict._replace(allowed=False, rule="BWN937", reason=reason))
        return Staged(verdict, token, f"{self.top}/{token}/{name}")

    def remove(self, token: str) -> bool:
        """Whether there was a copy of that token, which is now gone."""
        if not _TOKEN.fullmatch(token):
            return False
        try:
            folder = os.open(token, _DIR, dir_fd=self._fd)
        except OSError:
            return False
        try:
            for name in os.listdir(folder):
                os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)
        os.rmdir(token, dir_fd=self._fd)
        return True

    def sweep(self, max_age: float = MAX_AGE) -> int:
        """Removes copies older than `max_age` seconds; how many."""
        now, count = time.time(), 0
        for token in os.listdir(self._fd):
            if _TOKEN.fullmatch(token):
                try:
                    info = os.stat(token, dir_fd=self._fd, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if now - info.st_mtime > max_age:
                    count += self.remove(token)
        return count


def _copied(source: int, target: int, limit: int) -> int:
    """How many bytes were copied: at most one more than `limit`."""
    count = 0
    while count <= limit:
        data = os.pread(source, min(_CHUNK, limit + 1 - count), count)
        if not data:
            break
        count += len(data)
        while data:
            data = data[os.write(target, data) :]
    return count
