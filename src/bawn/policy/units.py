"""Sizes, durations and CPU counts as a policy writes them. Raises ValueError with what is allowed."""

import re

# IEC 80000-13 names are exact, SI names are decimal. A bare letter ("2g") means 2^30 to docker and
# 10^9 to others, so it is refused.
_SIZES = {
    "": 1, "B": 1,
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
    "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
_TIMES = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)")


def size(value: object) -> int:
    """Bytes of "2GiB", "64MiB", "1.5GB" or a plain integer (bytes)."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] not in _SIZES:
        raise ValueError('a size such as "2GiB", "64MiB" or "500MB" (1GiB = 1024MiB, 1GB = 1000MB)')
    return int(float(match[1]) * _SIZES[match[2]])


def duration(value: object) -> int:
    """Whole seconds of "90s", "30m", "2h", "1d" or a plain integer (seconds)."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] not in _TIMES:
        raise ValueError('a time such as "90s", "30m" or "2h"')
    return int(float(match[1]) * _TIMES[match[2]])


def cpus(value: object) -> int:
    """Thousandths of a CPU: 2 is 2000, 1.5 is 1500."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number of processors such as 2 or 1.5")
    return round(value * 1000)


def show_size(value: int) -> str:
    """The shortest exact spelling: 2147483648 is "2GiB"."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if value and value % _SIZES[unit] == 0:
            return f"{value // _SIZES[unit]}{unit}"
    return str(value)


def show_duration(value: int) -> str:
    """The shortest exact spelling: 7200 is "2h"."""
    for unit in ("d", "h", "m"):
        if value and value % _TIMES[unit] == 0:
            return f"{value // _TIMES[unit]}{unit}"
    return f"{value}s"
