"""The boot units, written and removed; the files that they read lie in /etc/bawn."""

import contextlib
import json
import os

from bawn.effects import process
from bawn.effects.atomic import write_atomic
from bawn.effects.setup_docker import writable_by_others
from bawn.effects.wall import BOOT
from bawn.effects.wall_tools import program
from bawn.errors import EngineError, HostError
from bawn.plan import wall_unit
from bawn.plan.model import Finding
from bawn.plan.wall import Wall, ruleset
from bawn.plan.wall_rules import finding


def files(wall: Wall, bawn: str, root: str = "") -> dict[str, str]:
    """Path -> text of all that a boot needs. `root` is put before each path. Raises HostError."""
    rules = f"{BOOT}/wall.nft"
    texts = {rules: ruleset(wall), f"{BOOT}/wall.json": json.dumps(wall._asdict())}
    for name, text in wall_unit.units(program("nft"), rules, bawn).items():
        texts[f"{wall_unit.DIRECTORY}/{name}"] = text
    return {f"{root}{path}": text for path, text in texts.items()}


def bawn_program(argv0: str) -> str:
    """The bawn that a unit may start as root. Raises HostError."""
    found = os.path.realpath(argv0)
    if wrong := writable_by_others(found):
        raise HostError(
            f"the boot unit would run {found} as root, but {wrong}", "sudo ./install, and use that"
        )
    return found


def install(wanted: dict[str, str]) -> bool:
    """Writes the files and enables the units; whether anything was changed. Where it cannot be done,
    what was there before is there again. Raises HostError, also where systemd does not run here."""
    if not os.path.isdir("/run/systemd/system"):
        raise HostError(
            "no boot unit is written: systemd does not run this machine",
            f"have your init run, before docker: nft -f {BOOT}/wall.nft (bawn wall apply --show writes it)",
        )
    changed = write(wanted)
    if changed:
        _systemctl("daemon-reload")
        _systemctl("enable", wall_unit.TABLES, wall_unit.LAYER)
    return changed


def write(wanted: dict[str, str]) -> bool:
    """The files alone: all of them, or none."""
    before = {path: _text(path) for path in wanted}
    if before == wanted:
        return False
    try:
        for path, text in wanted.items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_atomic(path, text.encode(), 0o644)
    except OSError as error:
        for path, old in before.items():
            with contextlib.suppress(OSError):
                if old is None:
                    os.unlink(path)
                else:
                    write_atomic(path, old.encode(), 0o644)
        raise HostError(f"cannot write {error.filename}: {error.strerror}") from None
    return True


def remove(root: str = "") -> bool:
    """Disables and removes; False where there was nothing."""
    names = (wall_unit.TABLES, wall_unit.LAYER)
    paths = [f"{root}{BOOT}/{n}" for n in ("wall.nft", "wall.json")]
    paths += [f"{root}{wall_unit.DIRECTORY}/{n}" for n in names]
    there = [path for path in paths if os.path.exists(path)]
    if there and not root and os.path.isdir("/run/systemd/system"):
        _systemctl("disable", *names)
    for path in there:
        os.unlink(path)
    return bool(there)


def check(wanted: dict[str, str]) -> tuple[Finding, ...]:
    """A note for each file that is not as planned; none where no unit was ever asked for."""
    have = {path: _text(path) for path in wanted}
    if not any(text is not None for text in have.values()):
        return ()
    return tuple(finding("BWN890", path) for path, text in wanted.items() if have[path] != text)


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(f"cannot read {path}: {error}") from None


def _systemctl(*words: str) -> None:
    done = process.run(("systemctl", *words), timeout=60)
    if done.code != 0:
        raise EngineError(f"systemctl {words[0]}: {done.complaint}", process.paste(done.argv))
