"""Builds the two static C programs of `bawn/box` into the wheel (and the editable tree).

They are static so that the same file serves as PID 1 in any image, and on the host without
regard to its libc. `CC` and `CFLAGS` are honoured.
"""

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAMS = ("init", "launch")
FLAGS = "-static -Os -s -std=gnu11 -Wall -Wextra -Werror -fstack-protector-strong -D_FORTIFY_SOURCE=2"


class BoxHook(BuildHookInterface[Any]):
    """Compiles `src/bawn/box/*.c` to `src/bawn/box/bin/`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        box = Path(self.root, "src/bawn/box")
        (box / "bin").mkdir(exist_ok=True)
        compiler = shlex.split(os.environ.get("CC", "cc"))
        flags = shlex.split(FLAGS + " " + os.environ.get("CFLAGS", ""))
        for name in PROGRAMS:
            out, source = box / "bin" / name, box / f"{name}.c"
            if out.exists() and out.stat().st_mtime >= source.stat().st_mtime:
                continue
            subprocess.run([*compiler, *flags, "-o", str(out), str(source)], check=True)
        # Machine code: the wheel is for this platform, whatever the Python.
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform_tag()}"


def _platform_tag() -> str:
    from packaging.tags import platform_tags

    return next(tag for tag in platform_tags() if tag.startswith("linux"))
