"""`bawn setup docker`: registers runsc with dockerd, and undoes itself exactly.

The undo is written before anything changes: a journal beside the kept copy, in bawn's state. The
outcome is one of three: applied (and verified), restored (and verified), or ROLLBACK FAILED, which
says what lies where and keeps the journal.
"""

import hashlib
import json
import os
import stat
from collections.abc import Callable

from bawn import box
from bawn.effects.atomic import write_atomic
from bawn.errors import HostError
from bawn.plan.daemon_json import Edit, register
from bawn.typed import NamedTuple

CONFIG = "/etc/docker/daemon.json"
DIRECTORY = "/usr/local/lib/bawn"  # where the runtime program and what it starts are copied to
WRAPPER = "runsc-docker"


class Setup(NamedTuple):
    """What will change: daemon.json, and the files of the runtime program, (path, content)."""

    config: str  # the real file, links resolved
    edit: Edit
    directory: str
    files: tuple[tuple[str, bytes], ...]


def prepare(config: str, directory: str, runsc: str, hide_net: bool) -> Setup:
    """What would be done; `hide_net` is the kernel remedy (launch.c). Changes nothing.

    Raises HostError.
    """
    real = os.path.realpath(config)
    program = f"{directory}/{WRAPPER}"
    edit = register(_read(real), real, program, ())
    return Setup(real, edit, directory, wrapper_files(directory, runsc, hide_net))


def wrapper_files(directory: str, runsc: str, hide_net: bool) -> tuple[tuple[str, bytes], ...]:
    """The runtime program that docker is given, and what it starts: (path, content)."""
    import sys

    remedy = " -n" if hide_net else ""
    script = f"""#!/bin/sh
# Written by `bawn setup docker`; removed by `bawn setup docker --undo`.
# runsc with read-only mounts that are the kernel's, and a faster start (launch.c and
# docker_stage.py of bawn say why).
case " $* " in
*" create "*) exec {sys.executable} -IS {directory}/docker_stage.py {directory}/launch{remedy} {runsc} "$@" ;;
esac
exec {directory}/launch -w{remedy} -- {runsc} "$@"
"""
    here = os.path.dirname(os.path.abspath(__file__))
    files = [(f"{directory}/{WRAPPER}", script.encode())]
    for name, source in (("docker_stage.py", f"{here}/docker_stage.py"), ("launch", box.LAUNCH)):
        with open(source, "rb") as file:
            files.append((f"{directory}/{name}", file.read()))
    return tuple(files)


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(f"cannot read {path}: {error}") from None


def journal(state: str, config: str) -> str:
    """The journal of a daemon.json: there is one while a setup is in force."""
    return f"{state}/setup/{hashlib.sha256(config.encode()).hexdigest()[:16]}"


def apply(setup: Setup, state: str, verify: Callable[[], None]) -> str:
    """Applies and verifies; "applied and verified", or the old state is restored and HostError
    says why. `verify` raises BawnError when the result does not work."""
    where = journal(state, setup.config)
    if os.path.exists(f"{where}/step.json"):
        raise HostError(f"a setup of {setup.config} is in force already", "bawn setup docker --undo")
    try:
        _write_journal(where, setup)
        os.makedirs(setup.directory, exist_ok=True)
        for path, content in setup.files:
            write_atomic(path, content, 0o755)
        os.makedirs(os.path.dirname(setup.config), exist_ok=True)
        mode, owner = _mode(setup.config)
        write_atomic(setup.config, setup.edit.new.encode(), mode, owner)
        verify()
    except Exception as error:
        undo(setup.config, state, force=True)
        reason = getattr(error, "message", str(error))
        raise HostError(f"setup failed, the old state is restored: {reason}") from None
    return "applied and verified"


def _mode(path: str) -> tuple[int, tuple[int, int] | None]:
    try:
        info = os.stat(path)
    except FileNotFoundError:
        return 0o644, None
    return stat.S_IMODE(info.st_mode), (info.st_uid, info.st_gid)


def _write_journal(where: str, setup: Setup) -> None:
    os.makedirs(where, mode=0o700, exist_ok=True)
    mode, owner = _mode(setup.config)
    if setup.edit.old is not None:
        write_atomic(f"{where}/before", setup.edit.old.encode(), 0o600)
    step = {
        "config": setup.config,
        "existed": setup.edit.old is not None,
        "mode": mode,
        "owner": owner,
        "after_sha256": hashlib.sha256(setup.edit.new.encode()).hexdigest(),
        "directory": setup.directory,
        "files": [path for path, _ in setup.files],
    }
    write_atomic(f"{where}/step.json", json.dumps(step).encode(), 0o600)


def undo(config: str, state: str, force: bool = False) -> str:
    """Puts the exact old bytes and mode back. "restored and verified", or "nothing to undo".

    Raises HostError: where the file has changed since (unless `force`), or ROLLBACK FAILED; the
    journal is kept then.
    """
    real = os.path.realpath(config)
    where = journal(state, real)
    try:
        with open(f"{where}/step.json") as file:
            step = json.load(file)
    except FileNotFoundError:
        return "nothing to undo"
    now = _read(real)
    digest = hashlib.sha256(now.encode()).hexdigest() if now is not None else ""
    if digest != step["after_sha256"] and not force:
        raise HostError(
            f"{real} has changed since bawn wrote it; the old copy is {where}/before",
            f"compare them, then: bawn setup docker --undo --force --config {config}",
        )
    try:
        _restore(real, where, step)
    except OSError as error:
        raise HostError(f"ROLLBACK FAILED: {error}; the old text of {real} lies in {where}/before") from None
    for name in ("before", "step.json"):
        if os.path.exists(f"{where}/{name}"):
            os.unlink(f"{where}/{name}")
    os.rmdir(where)
    return "restored and verified"


def _restore(real: str, where: str, step: dict[str, object]) -> None:
    """Raises OSError; verified by reading back."""
    if step["existed"]:
        with open(f"{where}/before", "rb") as file:
            before = file.read()
        owner = step["owner"]
        pair = (int(owner[0]), int(owner[1])) if isinstance(owner, list) else None
        write_atomic(real, before, int(str(step["mode"])), pair)
        with open(real, "rb") as file:
            if file.read() != before:
                raise OSError(f"{real} does not hold what was written")
    elif os.path.exists(real):
        os.unlink(real)
    files = step["files"]
    for path in files if isinstance(files, list) else []:
        if os.path.exists(path):
            os.unlink(path)
    directory = str(step["directory"])
    if os.path.isdir(directory) and not os.listdir(directory):
        os.rmdir(directory)
