"""An image as a plan sees it: where it lies, what it is, what it brings; and the run that holds it."""

import fcntl
import json
import os
from pathlib import Path

import pytest

from bawn.effects import rootfs
from bawn.effects.docker import ready
from bawn.errors import EngineError, HostError
from bawn.facts import gather
from bawn.facts.dirs import Dirs
from bawn.facts.model import ImageFact
from bawn.policy.parse import parse_policy, select
from tests.unit import docker_world
from tests.unit.test_doctor import DOCKER

RECORD = {"digest": "sha256:m", "layer": "sha256:l", "programs": {"codex": "/usr/bin/codex"}}


def image(tmp_path: Path, engine: str = "gvisor", name: str = "mine") -> ImageFact:
    text = f'version = 1\n[profile.x]\nimage = "{name}"\nengine = "{engine}"\n'
    where = Dirs(str(tmp_path / "c"), str(tmp_path), str(tmp_path / "r"))
    return gather._image(select(parse_policy(text, "bawn.toml"), None), where)


def make(tmp_path: Path, record: object = RECORD) -> Path:
    directory = tmp_path / "images" / "mine"
    (directory / "rootfs").mkdir(parents=True, exist_ok=True)
    (directory / "lock").touch()
    (directory / "image.json").write_text(record if isinstance(record, str) else json.dumps(record))
    return directory


def test_what_the_record_says(tmp_path: Path) -> None:
    directory = make(tmp_path)
    codex = (("codex", "/usr/bin/codex"),)
    assert image(tmp_path) == ImageFact("mine", f"{directory}/rootfs", "sha256:m", codex)
    assert image(tmp_path, "docker") == ImageFact("mine", "", "sha256:l", codex)
    assert image(tmp_path, "docker", "mine:latest") == ImageFact("mine:latest", "", "sha256:l", codex)
    assert image(tmp_path, "docker", "other") == ImageFact("other", "")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"digest": "x"}', '{"digest": 1, "programs": []}'])
def test_a_record_that_cannot_be_read_is_no_image(tmp_path: Path, text: str) -> None:
    make(tmp_path, text)
    fact = image(tmp_path)
    assert fact.rootfs == "" and "image.json cannot be read" in fact.problem


def test_a_root_that_is_a_link_is_no_image(tmp_path: Path) -> None:
    directory = make(tmp_path)
    (directory / "rootfs").rmdir()
    (directory / "rootfs").symlink_to("/")
    assert image(tmp_path).rootfs == ""


def test_a_run_holds_it(tmp_path: Path) -> None:
    directory = make(tmp_path)
    plan = docker_world.PLAN._replace(image="mine", rootfs=f"{directory}/rootfs", image_digest="sha256:m")
    held = rootfs.hold(plan)
    assert held is not None
    with open(directory / "lock") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(held)
    with open(directory / "lock") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with pytest.raises(HostError, match="was sha256:old at the plan"):
        rootfs.hold(plan._replace(image_digest="sha256:old"))
    assert rootfs.hold(plan._replace(rootfs="")) is None


@pytest.mark.parametrize("layers", [["sha256:other"], ["sha256:l", "sha256:more"], None])
def test_docker_has_another_image(layers: object, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = docker_world.PLAN._replace(image="mine", image_digest="sha256:l")
    answer = {"Config": {"Env": ["A=b"]}, "RootFS": {"Layers": layers}}
    monkeypatch.setattr("bawn.effects.docker.docker_api.image", lambda socket, name: answer)
    with pytest.raises(EngineError, match="not the one that bawn keeps"):
        ready(DOCKER, plan)
    answer["RootFS"] = {"Layers": ["sha256:l"]}
    assert ready(DOCKER, plan)[1] == ("A=b",)
