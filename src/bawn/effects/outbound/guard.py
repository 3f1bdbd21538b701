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
        self._fds: list[int] = []
        self.rules = rules
        self.home = home
        self.max_size = max_size
        self._roots = Roots(rules.roots)
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

    def __del__(self) -> None:
        """The service drops a guard when a new policy is loaded, while requests may still use it."""
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
                yield _no(one, "BWN938", one.text, f"more than {MAX_CANDIDATES} paths in one reply")
                return
            verdict, fd = self._one(one, same)
            if one.claimed or verdict.allowed or not _mere_mention(verdict):
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
            return _no(one, one.problem, one.text)
        first: Opened | None = None
        for reading in one.readings:
            found = self._open(reading, one, same)
            if found[0].allowed:
                return found
            if first is None or (first[0].rule in NOTHING_THERE and found[0].rule not in NOTHING_THERE):
                first = found
        assert first
        if first[0].rule in _BY_TEXT and first[0].asked != one.text:
            return _no(one, first[0].rule, one.text)
        return first

    def _open(self, text: str, one: Candidate, same: list[bool]) -> Opened:
        path, wrong = spelled(text, self.home)
        if wrong:
            return _no(one, wrong, text)
        place = self._roots.locate(path)
        if place.rule:
            return _no(one, place.rule, text)
        if not same[place.root]:
            return _no(one, "BWN903", text)
        try:
            return self._opened(text, one, place, same)
        except LeadsOut:
            return _no(one, "BWN931", text)
        except OSError as error:
            rule = _ERRORS.get(error.errno or 0, "BWN936")
            return _no(one, rule, text, f"{text}: {error.strerror}" if rule == "BWN936" else "")

    def _opened(self, text: str, one: Candidate, place: Place, same: list[bool]) -> Opened:
        named = self._path(place)
        fd = -1
        if not place.climbs:
            hidden = self.rules.hidden(named)
            if hidden:
                return _no(one, hidden.rule, text, hidden.reason, named)
            try:
                fd = openat2(self._fds[place.root], place.rel or ".", _READ)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
        if fd < 0:
            place = follow(self.rules.roots, self._roots, self._fds, place)
            if not same[place.root]:
                return _no(one, "BWN903", text)
            named = self._path(place)
            hidden = self.rules.hidden(named)
            if hidden:
                return _no(one, hidden.rule, text, hidden.reason, named)
            fd = openat2(self._fds[place.root], place.rel or ".", _READ)
        try:
            verdict = self._look(fd, text, one, place, named)
        except BaseException:
            os.close(fd)
            raise
        if verdict.allowed:
            return verdict, fd
        os.close(fd)
        return verdict, -1

    def _path(self, place: Place) -> str:
        real = self.rules.roots[place.root].real
        return f"{real}/{place.rel}" if place.rel else real

    def _look(self, fd: int, text: str, one: Candidate, place: Place, named: str) -> Verdict:
        """What was opened, by the descriptor: its kind, links, size, file system and own path."""
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            kind = next((word for test, word in _KINDS if test(info.st_mode)), "something else")
            return _no(one, "BWN932", text, f"{text} is {kind}, not a regular file")[0]
        if info.st_nlink > 1:
            return _no(one, "BWN933", text, f"{text} has {info.st_nlink} hard links")[0]
        if info.st_dev != self._idents[place.root][0]:
            return _no(one, "BWN935", text)[0]
        if info.st_size > self.max_size:
            reason = f"{text} has {info.st_size} bytes; at most {self.max_size} may leave"
            return _no(one, "BWN934", text, reason)[0]
        real = os.readlink(f"/proc/self/fd/{fd}")
        if real != named:  # renamed or removed since: it must still lie in a root, and not be hidden there
            if not info.st_nlink or self._roots.locate(real).root < 0:
                return _no(one, "BWN937", text)[0]
            hidden = self.rules.hidden(real)
            if hidden:
                return _no(one, hidden.rule, text, hidden.reason, real)[0]
        reason = f"{real} is inside {self.rules.roots[place.root].text}"
        return Verdict(True, "BWN900", reason, text, real, info.st_size, one.form, one.where)


def _no(one: Candidate, rule: str, text: str, reason: str = "", path: str = "") -> Opened:
    return denied(rule, text, reason, path, one.form, one.where), -1


def _mere_mention(verdict: Verdict) -> bool:
    """A path without an extension that leads to nothing, or `/word`: a command, a tag, a fraction."""
    if verdict.rule in NOTHING_THERE:
        return True
    return verdict.rule in ("BWN901", "BWN902") and verdict.asked.strip("/").count("/") == 0
