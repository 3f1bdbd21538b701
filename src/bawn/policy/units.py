"""Sizes, durations and CPU counts as a policy writes them. Pure.

Reading raises `NotAllowed`, a ValueError that says what is wrong and what to write.
Arithmetic is on whole numbers: 1.1GiB is 1181116006 bytes on every machine.
"""

import re

# IEC 80000-13 names are exact powers of two, SI names are decimal. A bare letter is refused: "2g" is
# 2^30 to docker and 10^9 to others.
SIZES = {
    "B": 1,
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
    "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
TIMES = {"s": 1, "m": 60, "h": 3600, "d": 86400}
NUMBER = r"[0-9]{1,15}(\.[0-9]{1,6})?"
_QUANTITY = rf"({NUMBER}) ?([A-Za-z]*)"


class NotAllowed(ValueError):
    """A value that cannot stand where it stands. The text says why.

    `instead` is the TOML value that was probably meant, `fix` a whole sentence where no value helps.
    """

    def __init__(self, why: str, instead: str = "", fix: str = "") -> None:
        super().__init__(why)
        self.instead = instead
        self.fix = fix


def size(value: object) -> int:
    """Bytes of "2GiB", "64MiB", "1.5GB" or a plain integer (bytes)."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = re.fullmatch(_QUANTITY, value) if isinstance(value, str) else None
    if match is None or match[3] not in SIZES:
        raise NotAllowed('not a size such as "2GiB" or "500MB"', _size_meant(match))
    return _whole(match[1], SIZES[match[3]])


def duration(value: object) -> int:
    """Whole seconds of "90s", "30m", "1.5h", "1d" or a plain integer (seconds)."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = re.fullmatch(_QUANTITY, value) if isinstance(value, str) else None
    if match is None or match[3] not in TIMES:
        raise NotAllowed('not a time such as "90s", "30m" or "2h"', _duration_meant(match))
    return _whole(match[1], TIMES[match[3]])


def cpus(value: object) -> int:
    """Thousandths of a CPU: 2 is 2000, 1.5 is 1500."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotAllowed("not a number such as 2 or 1.5")
    if not -1e9 < value < 1e9:  # nan and the infinities too
        raise NotAllowed("no number of processors")
    return round(value * 1000)


def show_size(value: int) -> str:
    """The shortest exact spelling: 2147483648 is "2GiB"."""
    for unit in ("TiB", "GiB", "MiB", "KiB", "B"):
        if value and value % SIZES[unit] == 0:
            return f"{value // SIZES[unit]}{unit}"
    return "0B"


def show_duration(value: int) -> str:
    """The shortest exact spelling: 7200 is "2h"."""
    for unit in ("d", "h", "m"):
        if value and value % TIMES[unit] == 0:
            return f"{value // TIMES[unit]}{unit}"
    return f"{value}s"


def show_cpus(value: int) -> str:
    """1500 is "1.5"."""
    return str(value // 1000) if value % 1000 == 0 else str(value / 1000)


def _whole(number: str, unit: int) -> int:
    """`number` times `unit`, rounded down."""
    whole, _, part = number.partition(".")
    return int(whole) * unit + (int(part) * unit // 10 ** len(part) if part else 0)


def _size_meant(match: re.Match[str] | None) -> str:
    if match is None:
        return ""
    letter = match[3][:1].upper()
    return f'"{match[1]}{letter}iB"' if letter in ("K", "M", "G", "T") else f'"{match[1]}MiB"'


def _duration_meant(match: re.Match[str] | None) -> str:
    if match is None:
        return ""
    unit = match[3][:1].lower()
    return f'"{match[1]}{unit if unit in TIMES else "s"}"'
