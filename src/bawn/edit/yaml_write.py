"""Values as YAML text that readers of YAML 1.1 and 1.2 take for the same. Pure."""

import json
import math
import re

from bawn.errors import HostError
from bawn.typed import Any

# A word that needs no quotes in any place; numbers, dates and sexagesimals begin otherwise.
_WORD = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@-]*\Z")
_RESERVED = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def scalar(value: object) -> tuple[str, bool]:
    """(text, written without quotes). Raises HostError for what is no scalar."""
    if value is None:
        return "null", True
    if isinstance(value, bool):
        return str(value).lower(), True
    if isinstance(value, int):
        return str(value), True
    if isinstance(value, float) and math.isfinite(value):
        text = repr(value)  # 1e+16 is a string to YAML 1.1
        return (text if "." in text else text.replace("e", ".0e")), True
    if isinstance(value, str):
        if _WORD.match(value) and value.lower() not in _RESERVED:
            return value, True
        return quoted(value), False
    raise HostError(f"{value!r} cannot be written as YAML")


def quoted(value: str) -> str:
    """Double quotes, with every character escaped that YAML does not print."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else _escape(ord(char)) for char in text)


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def flow(value: Any) -> str:
    """In one line, as in a flow collection."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(key)[0]}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)[0]


def block(value: Any, indent: str, unit: str) -> list[str]:
    """The lines of a collection that is not empty, without line ends."""
    if isinstance(value, list):
        return [f"{indent}- {flow(item)}" for item in value]
    lines = []
    for key, item in value.items():
        lines += entry(key, item, indent, unit)
    return lines


def entry(key: str, value: Any, indent: str, unit: str) -> list[str]:
    """The lines of one key."""
    if isinstance(value, dict | list) and value:
        return [f"{indent}{scalar(key)[0]}:", *block(value, indent + unit, unit)]
    return [f"{indent}{scalar(key)[0]}: {flow(value)}"]


def meaning(value: Any) -> Any:
    """What `yaml_tree.Node.meaning` has to be once this is read again."""
    if isinstance(value, dict):
        return ("mapping", "", "", tuple((meaning(key), meaning(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("sequence", "", "", tuple(map(meaning, value)))
    text, plain = scalar(value)
    return ("scalar", "", "", text if plain else value, plain)
