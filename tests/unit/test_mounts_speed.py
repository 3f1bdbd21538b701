"""That observing and compiling stay cheap: one listing a directory, linear in what is named."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from bawn.policy.model import DEFAULT_MASK
from tests.unit.mount_world import PROFILE, World, mount


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def fill(world: World, mounts: int, files: int) -> tuple[Any, ...]:
    made = []
    for number in range(mounts):
        world.file(*(f"m{number}/d{n // 20}/f{n}" for n in range(files)), f"m{number}/d0/.env")
        patterns = tuple(f"{kind}{number}" for kind in ("k*", "*.", "d0/x", "lit", "**/c/"))
        made.append(mount(world.path(f"m{number}"), "rw", mask=(*DEFAULT_MASK, *patterns)))
    return tuple(made)


def test_many_mounts_and_masks_list_every_directory_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = fill(world, 20, 60)
    listed: list[int] = []
    real: Any = os.scandir

    def counted(fd: Any) -> Any:
        listed.append(os.fstat(fd).st_ino)
        return real(fd)

    monkeypatch.setattr(os, "scandir", counted)
    plan = world.plan(*mounts)
    assert len(plan.guards) == 20
    assert len(listed) == len(set(listed)) == 20 * 4


def seconds(world: World, mounts: tuple[Any, ...]) -> float:
    """The best of three."""
    best = 99.0
    for _ in range(3):
        begin = time.perf_counter()
        world.plan(*mounts)
        best = min(best, time.perf_counter() - begin)
    return best


def test_ten_times_the_mounts_cost_no_more_than_ten_times(world: World) -> None:
    """A bound so loose that only a square breaks it: 100 times the pairs."""
    mounts = fill(world, 200, 20)
    assert seconds(world, mounts) < 25 * seconds(world, mounts[:20])


def test_masks_are_added_to_names_not_multiplied(world: World) -> None:
    """2,500 patterns by 5,000 names would be 12 million comparisons, above a second."""
    world.file(*(f"v/d{n // 50}/f{n}" for n in range(5000)))
    kinds = ("x{}", "x{}*", "*.x{}", "d{}/x", "**/e{}/y")
    many = (mount(world.path("v"), mask=tuple(k.format(n) for k in kinds for n in range(500))),)
    assert seconds(world, many) < 0.5


def test_a_repository_of_every_day(world: World) -> None:
    """Measured 4 ms (bench/compile.py); ten times that is a fault, not a slow machine."""
    world.file(*(f"repo/d{n // 50}/f{n}.py" for n in range(2000)), "repo/.git/config", "repo/CLAUDE.md")
    profile = PROFILE._replace(workdir=world.path("repo"))
    begin = time.perf_counter()
    for _ in range(5):
        world.facts(profile)
    assert (time.perf_counter() - begin) / 5 < 0.1
