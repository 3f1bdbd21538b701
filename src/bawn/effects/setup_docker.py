"""`bawn setup docker`: registers runsc with dockerd, by a change of the ledger."""

import os
import stat
from collections.abc import Callable

from bawn import box
from bawn.digest import sha256_hex
from bawn.effects import journal, ledger
from bawn.errors import HostError
from bawn.plan.change import Change, FileStep
from bawn.plan.daemon_json import Edit, register
from bawn.typed import NamedTuple

CONFIG = "/etc/docker/daemon.json"
DIRECTORY = "/usr/local/lib/bawn"  # where the runtime program and what it starts are copied to
WRAPPER = "runsc-docker"
KIND = "setup docker"


class Setup(NamedTuple):
    """What will change: daemon.json, and the files of the runtime program, (path, content)."""

    config: str  # the real file, links resolved
    edit: Edit
    directory: str
    files: tuple[tuple[str, bytes], ...]

    @property
    def program(self) -> str:
        """What docker runs as the runtime."""
        return f"{self.directory}/{WRAPPER}"

    @property
    def changes(self) -> bool:
        """Something is not yet as it should be."""
        return self.edit.changes or any(_bytes(path) != content for path, content in self.files)


def prepare(config: str, directory: str, runsc: str, hide_net: bool, python: str) -> Setup:
    """What would be done; `hide_net` is the kernel remedy (launch.c). Changes nothing.

    Raises HostError.
    """
    for program in (runsc, python, _existing(directory)):
        if wrong := writable_by_others(program):
            raise HostError(f"docker would run {program} as root, but {wrong}", "install it as root")
    for path in (directory, runsc, python):
        if not path.isprintable() or any(char in path for char in " \"'$`\\*?[();&|<>"):
            raise HostError(f"{path!r} cannot stand in a shell script", "use another --directory")
    real = os.path.realpath(config)
    edit = register(_text(real), real, f"{directory}/{WRAPPER}")
    return Setup(real, edit, directory, wrapper_files(directory, runsc, hide_net, python))


def writable_by_others(path: str) -> str:
    """Why somebody who is not root could change what root runs at `path`; "" where nobody can."""
    at = os.path.realpath(path)
    while True:
        try:
            info = os.stat(at)
        except OSError as error:
            return f"{at} cannot be looked at: {error.strerror}"
        sticky = stat.S_ISDIR(info.st_mode) and info.st_mode & stat.S_ISVTX
        if info.st_uid != 0:
            return f"{at} belongs to uid {info.st_uid}"
        if info.st_mode & 0o022 and not sticky:
            return f"{at} can be written by others (mode {stat.S_IMODE(info.st_mode):04o})"
        if at == "/":
            return ""
        at = os.path.dirname(at)


def _existing(path: str) -> str:
    """The nearest directory above `path` that is there."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def wrapper_files(directory: str, runsc: str, hide_net: bool, python: str) -> tuple[tuple[str, bytes], ...]:
    """The runtime program that docker is given, and what it starts: (path, content)."""
    remedy = " -n" if hide_net else ""
    script = f"""#!/bin/sh
# Written by `bawn setup docker`; removed by `bawn setup docker --undo`.
# runsc with read-only mounts that are the kernel's, and a faster start (launch.c and
# docker_stage.py of bawn say why).
case " $* " in
*" create "*) exec {python} -IS {directory}/docker_stage.py {directory}/launch{remedy} {runsc} "$@" ;;
esac
exec {directory}/launch -w{remedy} -- {runsc} "$@"
"""
    here = os.path.dirname(os.path.abspath(__file__))
    files = [(f"{directory}/{WRAPPER}", script.encode())]
    for name, source in (("docker_stage.py", f"{here}/docker_stage.py"), ("launch", box.LAUNCH)):
        with open(source, "rb") as file:
            files.append((f"{directory}/{name}", file.read()))
    return tuple(files)


def _bytes(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HostError(f"cannot read {path}: {error.strerror}") from None


def _text(path: str) -> str | None:
    data = _bytes(path)
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise HostError(f"cannot read {path}: {error}", f"mend {path}") from None


def apply(setup: Setup, state: str, verify: Callable[[], None], settle: Callable[[], None]) -> str:
    """Applies and verifies: "applied". Where something fails the old state is restored, `settle`
    brings back a daemon that `verify` had restarted, and HostError says what went wrong.

    `verify` raises BawnError when the result does not work, `settle` when it cannot.
    """
    before = in_force(state, setup.config)
    owned: set[str] = set()
    if before:
        wrote = next(kept.after for kept in before[-1].steps if kept.before.real == setup.config)
        if setup.edit.changes or wrote.sha256 != sha256_hex(setup.edit.new.encode()):
            raise HostError(f"a setup of {setup.config} is in force already", "bawn setup docker --undo")
        owned = {kept.path for entry in before for kept in entry.steps if kept.owned}
    for path, content in setup.files:
        if path not in owned and _bytes(path) not in (None, content):
            raise HostError(f"{path} is there and not bawn's", "remove it, or use another --directory")
    ledger.apply(_change(setup), state, verify, settle)
    return "applied"


def _change(setup: Setup) -> Change:
    """The program before the file that names it."""
    steps = [
        FileStep(path, _bytes(path), content, "docker's runtime program", 0o755, owned=True)
        for path, content in setup.files
    ]
    old = None if setup.edit.old is None else setup.edit.old.encode()
    steps.append(FileStep(setup.config, old, setup.edit.new.encode(), "register the runtime runsc"))
    return Change(KIND, f"setup of {setup.config}", tuple(steps), ("dockerd",))


def in_force(state: str, config: str) -> list[journal.Entry]:
    """The setups of this daemon.json (links resolved) that are not undone, oldest first."""
    return [
        entry
        for entry in journal.entries(state)
        if entry.kind == KIND and entry.in_force and any(kept.before.real == config for kept in entry.steps)
    ]


def undo(config: str, state: str, force: bool = False) -> str:
    """Puts the exact old bytes and mode back. "restored and verified", or "nothing to undo".

    Raises HostError: where the file has changed since (unless `force`), or ROLLBACK FAILED; the
    journal is kept then.
    """
    entries = in_force(state, os.path.realpath(config))
    for entry in reversed(entries):
        ledger.rollback(state, entry.number, force=force)
    return journal.RESTORED if entries else "nothing to undo"
