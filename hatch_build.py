"""Builds the static C programs of `bawn/box` into the wheel (and the editable tree)."""

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BoxHook(BuildHookInterface[Any]):
    """Runs `src/bawn/box/build.sh`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        subprocess.run(["sh", str(Path(self.root, "src/bawn/box/build.sh"))], check=True)
        # Machine code: the wheel is for this platform, whatever the Python.
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform_tag()}"


def _platform_tag() -> str:
    from packaging.tags import platform_tags

    return next(tag for tag in platform_tags() if tag.startswith("linux"))
