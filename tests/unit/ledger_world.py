"""A directory with a change to make in it, and ways to let system calls fail or kill."""

import os
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from bawn.effects import journal, ledger
from bawn.errors import HostError
from bawn.plan.change import Change, FileStep

# The calls by which the ledger changes anything; opening for reading is not among them.
CALLS = ("open", "write", "fsync", "rename", "unlink", "mkdir", "rmdir", "fchmod", "fchown")


class World:
    """Three steps: an edit of a file behind a link, a new file in new directories, a removal."""

    def __init__(self, top: Path) -> None:
        self.top, self.state = top, str(top / "state")
        self.home = top / "home"
        (self.home / "dotfiles").mkdir(parents=True)
        self.real = self.home / "dotfiles/config.yaml"
        self.real.write_bytes(b"a: 1\n# kept\n")
        self.real.chmod(0o600)
        self.config = self.home / "config.yaml"
        self.config.symlink_to("dotfiles/config.yaml")
        self.gone = self.home / "gone.env"
        self.gone.write_bytes(b"SECRET=1\n")
        self.gone.chmod(0o640)
        self.made = self.home / "new/er/unit.toml"
        self.old = self.picture()

    def change(self) -> Change:
        return Change("test", "the test's change", (
            FileStep(str(self.config), b"a: 1\n# kept\n", b"a: 2\n# kept\n", "set a"),
            FileStep(str(self.made), None, b"x = 1\n", "write it", 0o600),
            FileStep(str(self.gone), b"SECRET=1\n", None, "remove it"),
        ))  # fmt: skip

    def apply(self, **named: Any) -> journal.Entry:
        return ledger.apply(self.change(), self.state, **named)

    def picture(self) -> dict[str, object]:
        """Everything below home: kind, mode, owner, content or target."""
        found: dict[str, object] = {}
        for path in sorted(self.home.rglob("*")):
            info = path.lstat()
            if path.is_symlink():
                what: object = os.readlink(path)
            else:
                what = path.read_bytes() if path.is_file() else "directory"
            found[str(path.relative_to(self.home))] = (stat.filemode(info.st_mode), info.st_uid, what)
        return found

    def whole(self) -> None:
        """Old bytes or new ones: each file by itself is never anything between."""
        assert self.config.is_symlink()
        assert self.real.read_bytes() in (b"a: 1\n# kept\n", b"a: 2\n# kept\n")
        assert stat.S_IMODE(self.real.stat().st_mode) == 0o600
        assert not self.gone.exists() or self.gone.read_bytes() == b"SECRET=1\n"
        assert not self.made.exists() or self.made.read_bytes() == b"x = 1\n"

    def applied(self) -> bool:
        return self.real.read_bytes() == b"a: 2\n# kept\n" and self.made.exists() and not self.gone.exists()

    def end(self) -> None:
        """The next bawn: whatever happened, one rollback ends it, and all is as it was."""
        assert not journal.busy(self.state)
        for entry in reversed(journal.entries(self.state)):
            if entry.in_force:
                ledger.rollback(self.state, entry.number)
        assert self.picture() == self.old
        assert all(entry.state == journal.RESTORED for entry in journal.entries(self.state))


@contextmanager
def at_call(act: Callable[[int, str, Callable[[], Any]], Any]) -> Iterator[None]:
    """Every changing call goes through `act(number, name, call)`."""
    count = 0

    def wrap(name: str, real: Any) -> Any:
        def one(*args: Any, **named: Any) -> Any:
            nonlocal count
            if name == "open" and not args[1] & os.O_CREAT:
                return real(*args, **named)
            count += 1
            return act(count, name, lambda: real(*args, **named))

        return one

    with mock.patch.multiple(os, **{name: wrap(name, getattr(os, name)) for name in CALLS}):
        yield


def count(do: Callable[[], object]) -> int:
    """How many changing calls `do` makes."""
    seen = []

    def act(number: int, name: str, call: Callable[[], Any]) -> Any:
        seen.append(name)
        return call()

    with at_call(act):
        do()
    return len(seen)


def failing(*numbers: int, after: int = 0) -> Callable[[int, str, Callable[[], Any]], Any]:
    """These calls fail once; with `after`, every call from that one on."""

    def act(number: int, name: str, call: Callable[[], Any]) -> Any:
        if number in numbers or (after and number >= after):
            raise OSError(28, f"No space left on device ({name} {number})")
        return call()

    return act


def killed(do: Callable[[], object], at: int, before: bool) -> bool:
    """Runs `do` in a child that is killed before or after its call number `at`; False: it ended."""
    pid = os.fork()
    if not pid:

        def act(number: int, name: str, call: Callable[[], Any]) -> Any:
            if number == at and before:
                os.kill(os.getpid(), signal.SIGKILL)
            done = call()
            if number == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        try:
            with at_call(act):
                do()
        except HostError:
            os._exit(3)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])
