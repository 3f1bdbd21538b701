"""`bawn setup docker`: registers runsc with dockerd, and undoes itself exactly.

The undo is written before anything changes: a journal beside the kept copy, in bawn's state. The
outcome is one of three: applied and verified, restored and verified, or ROLLBACK FAILED, which says
what lies where and keeps the journal.
"""

import json
import os
import stat
from collections.abc import Callable

from bawn import box
from bawn.digest import sha256_hex
from bawn.effects.atomic import write_atomic
from bawn.errors import BawnError, HostError
from bawn.plan.daemon_json import Edit, register
from bawn.typed import Any, NamedTuple

CONFIG = "/etc/docker/daemon.json"
DIRECTORY = "/usr/local/lib/bawn"  # where the runtime program and what it starts are copied to
WRAPPER = "runsc-docker"


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


def journal(state: str, config: str) -> str:
    """The journal of a daemon.json: there is one while a setup is in force."""
    return f"{state}/setup/{sha256_hex(config.encode())[:16]}"


def apply(setup: Setup, state: str, verify: Callable[[], None], settle: Callable[[], None]) -> str:
    """Applies and verifies: "applied". Where something fails the old state is restored, `settle`
    brings back a daemon that `verify` had restarted, and HostError says what went wrong.

    `verify` raises BawnError when the result does not work, `settle` when it cannot.
    """
    where = journal(state, setup.config)
    step = _journalled(where)
    if step is not None and (
        setup.edit.changes or step["after_sha256"] != sha256_hex(setup.edit.new.encode())
    ):
        raise HostError(f"a setup of {setup.config} is in force already", "bawn setup docker --undo")
    owned = step["files"] if step else []
    for path, content in setup.files:
        if path not in owned and _bytes(path) not in (None, content):
            raise HostError(f"{path} is there and not bawn's", "remove it, or use another --directory")
    try:
        if step is None:
            _write_journal(where, setup)
        os.makedirs(setup.directory, exist_ok=True)
        for path, content in setup.files:
            write_atomic(path, content, 0o755)
        if setup.edit.changes:
            os.makedirs(os.path.dirname(setup.config), exist_ok=True)
            mode, owner = _mode(setup.config)
            write_atomic(setup.config, setup.edit.new.encode(), mode, owner)
        if _text(setup.config) != setup.edit.new:
            raise HostError(f"{setup.config} does not hold what was written")
        verify()
    except BaseException as error:
        reason = error.message if isinstance(error, BawnError) else repr(error)
        _take_back(setup.config, state, settle, reason)
        raise HostError(f"setup failed; the old state is restored and verified: {reason}") from None
    return "applied"


def _take_back(config: str, state: str, settle: Callable[[], None], reason: str) -> None:
    try:
        undo(config, state, force=True)
    except HostError as error:
        raise HostError(f"{error.message} (it had failed: {reason})", error.fix) from None
    try:
        settle()
    except BawnError as error:
        raise HostError(
            f"ROLLBACK FAILED: {config} is as it was, but docker is not: {error.message} "
            f"(it had failed: {reason})",
            "start docker by hand, and look at its log",
        ) from None


def _mode(path: str) -> tuple[int, tuple[int, int] | None]:
    try:
        info = os.stat(path)
    except FileNotFoundError:
        return 0o644, None
    return stat.S_IMODE(info.st_mode), (info.st_uid, info.st_gid)


def _write_journal(where: str, setup: Setup) -> None:
    """`step.json` goes last: a journal without it has nothing to undo."""
    os.makedirs(where, mode=0o700, exist_ok=True)
    mode, owner = _mode(setup.config)
    if setup.edit.old is not None:
        write_atomic(f"{where}/before", setup.edit.old.encode(), 0o600)
    step = {
        "config": setup.config,
        "existed": setup.edit.old is not None,
        "mode": mode,
        "owner": owner,
        "before_sha256": sha256_hex((setup.edit.old or "").encode()),
        "after_sha256": sha256_hex(setup.edit.new.encode()),
        "made": _missing(setup.config) + _missing(f"{setup.directory}/x"),
        "files": [path for path, _ in setup.files],
    }
    write_atomic(f"{where}/step.json", json.dumps(step).encode(), 0o600)


def _missing(path: str) -> list[str]:
    """The directories above `path` that are not there, the deepest first."""
    found = []
    while (path := os.path.dirname(path)) and not os.path.exists(path):
        found.append(path)
    return found


def _journalled(where: str) -> dict[str, Any] | None:
    data = _bytes(f"{where}/step.json")
    if data is None:
        return None
    try:
        step = json.loads(data)
        for key in ("existed", "mode", "owner", "before_sha256", "after_sha256", "made", "files"):
            step[key]
    except (ValueError, KeyError, TypeError):
        raise HostError(f"{where}/step.json cannot be read", f"the old file lies in {where}/before") from None
    return dict(step)


def undo(config: str, state: str, force: bool = False) -> str:
    """Puts the exact old bytes and mode back. "restored and verified", or "nothing to undo".

    Raises HostError: where the file has changed since (unless `force`), or ROLLBACK FAILED; the
    journal is kept then.
    """
    real = os.path.realpath(config)
    where = journal(state, real)
    step = _journalled(where)
    if step is None:
        _forget(where)
        return "nothing to undo"
    now = _bytes(real)
    digest = "" if now is None else sha256_hex(now)
    untouched = (now is None and not step["existed"]) or (step["existed"] and digest == step["before_sha256"])
    if not untouched and digest != step["after_sha256"] and not force:
        raise HostError(
            f"{real} has changed since bawn wrote it; the old copy is {where}/before",
            f"compare them, then: bawn setup docker --undo --force --config {config}",
        )
    try:
        _restore(real, where, step)
    except OSError as error:
        kept = (
            f"the old text of {real} lies in {where}/before" if step["existed"] else f"{real} was not there"
        )
        raise HostError(
            f"ROLLBACK FAILED: {error}; {kept}", "mend that, then: bawn setup docker --undo"
        ) from None
    _forget(where)
    return "restored and verified"


def _forget(where: str) -> None:
    for name in ("step.json", "before"):
        if os.path.exists(f"{where}/{name}"):
            os.unlink(f"{where}/{name}")
    if os.path.isdir(where):
        os.rmdir(where)


def _restore(real: str, where: str, step: dict[str, Any]) -> None:
    """Raises OSError; verified by reading back."""
    if step["existed"]:
        with open(f"{where}/before", "rb") as file:
            before = file.read()
        if sha256_hex(before) != step["before_sha256"]:
            raise OSError(f"{where}/before is not what was kept")
        owner = step["owner"]
        if _bytes(real) != before or _mode(real) != (step["mode"], tuple(owner)):
            write_atomic(real, before, step["mode"], (owner[0], owner[1]))
        if _bytes(real) != before or _mode(real) != (step["mode"], tuple(owner)):
            raise OSError(f"{real} does not hold what was written")
    elif os.path.exists(real):
        os.unlink(real)
    for path in step["files"]:
        if os.path.exists(path):
            os.unlink(path)
    for path in step["made"]:
        if os.path.isdir(path) and not os.listdir(path):
            os.rmdir(path)
