"""Running programs that read a file when they started: after a change they hold the other text."""

import os


def running(names: tuple[str, ...], proc: str = "/proc") -> list[str]:
    """ "PID COMMAND" of each process whose program, or whose script, is called one of `names`."""
    if not names:
        return []
    found = []
    for entry in sorted((name for name in os.listdir(proc) if name.isdecimal()), key=int):
        try:
            with open(f"{proc}/{entry}/cmdline", "rb") as file:
                words = file.read(4096).decode(errors="replace").rstrip("\0").split("\0")
        except OSError:  # ended meanwhile
            continue
        if any(os.path.basename(word) in names for word in words[:2]):
            found.append(f"{entry} {' '.join(words)[:120]}")
    return found
