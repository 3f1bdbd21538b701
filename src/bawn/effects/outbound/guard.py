"""The guard: a candidate's readings, opened one after the other, until one may leave."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator

from bawn.effects.outbound.links import LeadsOut, follow
from bawn.effects.outbound.openat2 import openat2
from bawn.outbound.decide import Ruleset
from bawn.outbound.extract import MAX_CANDIDATES
from bawn.outbound.locate import Place, Roots, spelled
from bawn.outbound.model import Candidate, Verdict, denied
from bawn.outbound.rules import NOTHING_THERE
from bawn.outbound.structured import candidates
from bawn.typed import Any

# O_NONBLOCK: a FIFO must not hold us up. O_NOCTTY: nor a terminal become ours.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_KINDS = ((stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"),
          (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))  # fmt: skip
_ERRORS = {
    errno.ENOENT: "BWN930",
    errno.ENOTDIR: "BWN930",
    errno.ENAMETOOLONG: "BWN923",
    errno.EXDEV: "BWN935",
    errno.ENXIO: "BWN932",  # a socket, or a device without a driver
    errno.ENODEV: "BWN932",
    errno.ENOSYS: "BWN939",
    errno.ELOOP: "BWN937",
}
# What holds of every reading alike is said of the one that a person would take.
_BY_TEXT = frozenset(("BWN901", "BWN902", "BWN903", "BWN930"))
Opened = tuple[Verdict, int]  # the descriptor, -1 where denied


class Guard:
    """Decides and opens. Holds one descriptor for each root; a context manager that closes them."""

    def __init__(self, rules: Ruleset, home: str, max_size: int) -> None:
        """Raises OSError for a root that is not a directory."""
        self.rules = rules
        self._roots = Roots(rules.roots)
        self.home = home
        self.max_size = max_size
        self._fds: list[int] = []
        self._idents: list[tuple[int, int]] = []
        self._same: list[bool] = []
        try:
            for root in rules.roots:
                fd = os.open(root.real, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                self._fds.append(fd)
                info = os.fstat(fd)
                self._idents.append((info.st_dev, info.st_ino))
        except OSError:
            self.close()
            raise

    def __enter__(self) -> "Guard":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.pop())

    def files(self, data: Any) -> Iterator[Opened]:
        """One verdict for each file that `data` names: a reply's text, or what a gateway is about to
        send as data. Whoever calls closes the descriptors. Raises structured.Unreadable.
        """
        return self.judge(candidates(data))

    def judge(self, found: Iterable[Candidate]) -> Iterator[Opened]:
        """The verdicts, in order. What is but mentioned, and is not there, has none."""
        same = self._unmoved()
        for number, one in enumerate(found):
            if number >= MAX_CANDIDATES:
                yield denied("BWN938", one.text, f"more than {MAX_CANDIDATES} paths in one reply"), -1
                return
            verdict, fd = self._one(one, same)
            if not verdict.allowed:
                if not one.claimed and _mere_mention(verdict):
                    continue
                verdict = verdict._replace(form=one.form, where=one.where)
            yield verdict, fd

    def drifted(self) -> list[str]:
        """Roots, as the policy writes them, that are no longer what they were when it was loaded."""
        same = self._unmoved()
        return [root.text for root, held in zip(self.rules.roots, same, strict=True) if not held]

    def _unmoved(self) -> list[bool]:
        """Both spellings of each root still lead to the directory that was opened at load."""
        same = []
        for root, ident in zip(self.rules.roots, self._idents, strict=True):
            try:
                looked = [os.stat(path) for path in {root.spelled, root.real}]
                same.append(all((one.st_dev, one.st_ino) == ident for one in looked))
            except OSError:
                same.append(False)
        return same

    def _one(self, one: Candidate, same: list[bool]) -> Opened:
        """The first reading that may leave; else what is wrong with the likeliest that is there."""
        if one.problem:
            return denied(one.problem, one.text), -1
        first: Verdict | None = None
        for reading in one.readings:
            verdict, fd = self._open(reading, one, same)
            if verdict.allowed:
                return verdict, fd
            if first is None or (first.rule in NOTHING_THERE and verdict.rule not in NOTHING_THERE):
                first = verdict
        assert first
        if first.rule in _BY_TEXT:
            return denied(first.rule, one.text), -1
        return first, -1

    def _open(self, text: str, one: Candidate, same: list[bool]) -> Opened:
        path, wrong = spelled(text, self.home)
        if wrong:
            return denied(wrong, text), -1
        place = self._roots.locate(path)
        if place.rule:
            return denied(place.rule, text), -1
        if not same[place.root]:
            return denied("BWN903", text), -1
        try:
            return self._opened(text, one, place, same)
        except LeadsOut:
            return denied("BWN931", text), -1
        except OSError as error:
            rule = _ERRORS.get(error.errno or 0, "BWN936")
            return denied(rule, text, f"{text}: {error.strerror}" if rule == "BWN936" else ""), -1

    def _opened(self, text: str, one: Candidate, place: Place, same: list[bool]) -> Opened:
        named = self._path(place)
        fd = -1
        if not place.climbs:
            hidden = self.rules.hidden(named)
            if hidden:
                return denied(hidden.rule, text, hidden.reason, named), -1
            try:
                fd = openat2(self._fds[place.root], place.rel or ".", _READ)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
        if fd < 0:
            place = follow(self.rules.roots, self._roots, self._fds, place)
            if not same[place.root]:
                return denied("BWN903", text), -1
            named = self._path(place)
            hidden = self.rules.hidden(named)
            if hidden:
                return denied(hidden.rule, text, hidden.reason, named), -1
            fd = openat2(self._fds[place.root], place.rel or ".", _READ)
        try:
            verdict = self._look(fd, text, one, place, named)
        except BaseException:
            os.close(fd)
            raise
        if not verdict.allowed:
            os.close(fd)
            fd = -1
        return verdict, fd

    def _path(self, place: Place) -> str:
        real = self.rules.roots[place.root].real
        return f"{real}/{place.rel}" if place.rel else real

    def _look(self, fd: int, text: str, one: Candidate, place: Place, named: str) -> Verdict:
        """What was opened, by the descriptor: its kind, links, size, file system and own path."""
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            kind = next((word for test, word in _KINDS if test(info.st_mode)), "something else")
            return denied("BWN932", text, f"{text} is {kind}, not a regular file")
        if info.st_nlink != 1:
            rule = "BWN933" if info.st_nlink else "BWN937"
            return denied(rule, text, f"{text} has {info.st_nlink} hard links" if info.st_nlink else "")
        if info.st_dev != self._idents[place.root][0]:
            return denied("BWN935", text)
        if info.st_size > self.max_size:
            return denied("BWN934", text, f"{text} has {info.st_size} bytes; at most {self.max_size} may leave")
        real = os.readlink(f"/proc/self/fd/{fd}")
        if real != named:  # renamed since: it must still be beneath a root, and not hidden there
            if self._roots.locate(real).root < 0:
                return denied("BWN937", text)
            hidden = self.rules.hidden(real)
            if hidden:
                return denied(hidden.rule, text, hidden.reason, real)
        reason = f"{real} is inside {self.rules.roots[place.root].text}"
        return Verdict(True, "BWN900", reason, text, real, info.st_size, one.form, one.where)


def _mere_mention(verdict: Verdict) -> bool:
    """A path without an extension that leads to nothing, or `/word`: a command, a tag, a fraction."""
    if verdict.rule in NOTHING_THERE:
        return True
    return verdict.rule in ("BWN901", "BWN902") and verdict.asked.strip("/").count("/") == 0
