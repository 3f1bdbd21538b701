"""What the service answers: a request's target and data -> verdicts, copies, descriptors."""

import os
from collections.abc import Callable
from threading import Lock

from bawn.effects.outbound import audit
from bawn.effects.outbound.guard import Guard
from bawn.effects.outbound.scan import scanned
from bawn.effects.outbound.stage import Stage, Staged
from bawn.outbound.http import Refused
from bawn.outbound.model import Verdict, denied
from bawn.outbound.structured import Unreadable
from bawn.typed import Any, NamedTuple

MAX_FDS = 64  # of one answer; SCM_MAX_FD is 253, and a gateway has a limit of open files
MAX_STAGED = 256  # of one call

Scan = Callable[[Verdict, int], Verdict]


class Result(NamedTuple):
    """`fds` are open, and the caller's to close."""

    data: dict[str, Any]
    fds: tuple[int, ...] = ()


class Service:
    """One policy's guard with everything that a call needs. Raises HostError where nothing may leave."""

    def __init__(self, guard: Guard, state: str, scan: bool = False, hide: bool = False) -> None:
        """`hide`: answers do not name denied files. `scan`: the content is searched for secrets."""
        self.guard = guard
        self.state = state
        self.hide = hide
        self._scan: Scan | None = scanned if scan else None
        self._stage: Stage | None = None
        self._lock = Lock()

    @property
    def stage(self) -> Stage:
        """Made when first needed: a check leaves nothing behind."""
        with self._lock:
            if self._stage is None:
                self._stage = Stage(self.state)
                self._stage.sweep()
            return self._stage

    def close(self) -> None:
        self.guard.close()
        if self._stage:
            self._stage.close()

    def call(self, name: str, data: Any) -> Result:
        """`name`: check, stage, open or unstage. Raises Refused for data that says nothing."""
        if name == "unstage":
            token = data.get("token") if isinstance(data, dict) else None
            if not isinstance(token, str):
                raise Refused(400, '{"token": "..."}')
            return Result({"bawn_outbound": 1, "removed": self.stage.remove(token)})
        fds: list[int] = []
        try:
            rows = self._rows(name, data, fds)
            audit.record(self.state, name, [row.verdict for row in rows])
        except Unreadable as error:
            _close(fds)
            raise Refused(400, str(error)) from None
        except BaseException:
            _close(fds)
            raise
        files = []
        number = 0
        for row in rows:
            one = row.verdict.as_data(self.hide)
            if row.token:
                one |= {"token": row.token, "staged": row.path}
            if name == "open" and row.verdict.allowed:
                one["fd"] = number
                number += 1
            files.append(one)
        count = sum(not row.verdict.allowed for row in rows)
        return Result({"bawn_outbound": 1, "denied": count, "files": files}, tuple(fds))

    def _rows(self, name: str, data: Any, fds: list[int]) -> list[Staged]:
        """The verdicts; `fds` takes the descriptors that stay open."""
        rows: list[Staged] = []
        most = {"open": MAX_FDS, "stage": MAX_STAGED}.get(name, 0)
        kept = 0
        for verdict, fd in self.guard.files(data):
            if fd < 0:
                rows.append(Staged(verdict))
                continue
            try:
                row = Staged(self._scan(verdict, fd) if self._scan else verdict)
                if row.verdict.allowed and most and kept == most:
                    row = Staged(denied("BWN938", verdict.asked, f"more than {most} files at once", "",
                                        verdict.form, verdict.where))  # fmt: skip
                elif row.verdict.allowed and name == "stage":
                    row = self._copied(verdict, fd)
                elif row.verdict.allowed and name == "open":
                    fds.append(fd)
                    fd = -1
                kept += row.verdict.allowed
            finally:
                if fd >= 0:
                    os.close(fd)
            rows.append(row)
        return rows

    def _copied(self, verdict: Verdict, fd: int) -> Staged:
        """A copy; where content is searched, the copy is searched again: it is what leaves."""
        row = self.stage.copy(verdict, fd, self.guard.max_size)
        if self._scan and row.verdict.allowed:
            copy = os.open(row.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                again = self._scan(row.verdict, copy)
            finally:
                os.close(copy)
            if not again.allowed:
                self.stage.remove(row.token)
                return Staged(again)
        return row


def _close(fds: list[int]) -> None:
    while fds:
        os.close(fds.pop())
