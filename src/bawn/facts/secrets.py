"""Secrets by name: whether one is there (a fact), and its value (only for the box's start)."""

import os

from bawn.errors import HostError
from bawn.policy.model import Secret

LIMIT = 64 << 10  # bytes; a key or token is far smaller


def have(secret: Secret, home: str) -> bool:
    """Is a value to be had?"""
    if secret.file:
        return os.access(_path(secret, home), os.R_OK)
    return bool(os.environ.get(secret.name))


def read(secret: Secret, home: str) -> str:
    """The value; a file's final newline is not part of it. Raises HostError, never with the value."""
    if not secret.file:
        return os.environ[secret.name]
    path = _path(secret, home)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LIMIT + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(f"cannot read the secret {secret.name} from {path}: {error}") from None
    value = text.rstrip("\n")
    if len(text) > LIMIT or "\n" in value or "\0" in value:
        raise HostError(f"the secret {secret.name} in {path} is not one line of text")
    return value


def _path(secret: Secret, home: str) -> str:
    return home + secret.file[1:] if secret.file.startswith("~/") else secret.file
