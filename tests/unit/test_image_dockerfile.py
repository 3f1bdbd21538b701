"""The Dockerfile is that of the lock file; run as a program, this writes it.

PYTHONPATH=src python -m tests.unit.test_image_dockerfile
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bawn import image
from bawn.plan import image as recipe
from bawn.plan.dockerfile import dockerfile

LOCK = recipe.parse_lock(Path(image.LOCK).read_text(), image.LOCK)


def test_it_is_the_locks() -> None:
    assert Path(image.DOCKERFILE).read_text() == dockerfile(LOCK), "run this file as a program"


def test_what_it_names() -> None:
    text = dockerfile(LOCK)
    for name in LOCK.debian:
        assert name in text
    for target in (*recipe.programs("x86_64").values(), *recipe.programs("aarch64").values()):
        assert f"ln -s /{target} " in text
    assert not re.search(r"\d+\.\d+\.\d+", text)  # versions stand in the lock alone
    assert text.count("USER 1000:1000") == 1


def test_its_shell_is_one(tmp_path: Path) -> None:
    """Each RUN is a program that sh can read, and the one for npm takes the lock apart."""
    text = dockerfile(LOCK)
    runs = re.findall(r"^RUN (.*?[^\\])$", text, re.M | re.S)
    assert len(runs) == 3
    for run in runs:
        subprocess.run(["sh", "-n", "-c", run], check=True)
    if not shutil.which("node"):
        pytest.skip("missing: node")
    shutil.copy(image.LOCK, tmp_path)
    subprocess.run(["sh", "-c", runs[0].replace("\\\n", "")], cwd=tmp_path, check=True)
    assert json.loads((tmp_path / "package.json").read_text()) == LOCK.package
    assert json.loads((tmp_path / "package-lock.json").read_text()) == LOCK.packages


if __name__ == "__main__":
    Path(image.DOCKERFILE).write_text(dockerfile(LOCK))
