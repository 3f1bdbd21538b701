"""Reads a Hermes home: config.yaml, .env, profiles, the managed scope. Changes nothing."""

import os

from bawn.errors import HostError
from bawn.typed import Any, NamedTuple

MANAGED = "/etc/hermes"
LIMIT = 4 << 20  # bytes of a configuration


class Found(NamedTuple):
    """A profile's files: texts, None where there is none; `present` what `watched` named and is there."""

    profile: str
    home: str
    config: str | None
    dotenv: str | None
    managed: str | None
    managed_env: str | None
    present: tuple[str, ...]


def observe(home: str, managed: str, watched: tuple[str, ...]) -> list[Found]:
    """The default profile and those below profiles/, in order. Raises HostError for no Hermes home."""
    if not os.path.isdir(home):
        raise HostError(f"{home} is no directory", "bawn team audit hermes --home DIR")
    homes = [("default", home)]
    folder = f"{home}/profiles"
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    homes += [(name, f"{folder}/{name}") for name in names if os.path.isdir(f"{folder}/{name}")]
    return [_profile(name, where, managed, watched) for name, where in homes]


def _profile(name: str, home: str, managed: str, watched: tuple[str, ...]) -> Found:
    present = tuple(path for path in watched if os.path.isdir(f"{home}/{path}"))
    return Found(
        name,
        home,
        text(f"{home}/config.yaml"),
        text(f"{home}/.env"),
        text(f"{managed}/config.yaml"),
        text(f"{managed}/.env"),
        present,
    )


def files(home: str, names: Any) -> tuple[str, ...]:
    """Those of `names` that are files below `home`: Hermes mounts no others."""
    top = os.path.realpath(home)
    wanted = [name.strip() for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return tuple(
        name
        for name in wanted
        if not os.path.isabs(name)
        and os.path.isfile(f"{home}/{name}")
        and os.path.realpath(f"{home}/{name}").startswith(f"{top}/")
    )


def text(path: str) -> str | None:
    """Raises HostError for what is there and cannot be read."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read(LIMIT)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(f"cannot read {path}: {error}") from None
