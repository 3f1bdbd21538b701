"""Every changing system call of a change and of its undo fails once, or is the last before a kill."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bawn.effects import journal, ledger
from bawn.errors import HostError
from tests.unit.ledger_world import World, at_call, count, failing, killed

MOST = 80  # calls; more than a change of three steps makes


def broken() -> None:
    raise HostError("the live check failed")


def one_of_three(world: World, do: Callable[[], object]) -> str:
    """Does it and holds the claim against the files."""
    try:
        do()
    except HostError as error:
        world.whole()
        if error.message.startswith(journal.FAILED):
            assert str(world.real) in error.message
            assert "before-1" in error.message
            return journal.FAILED
        assert journal.RESTORED in error.message or "nothing was touched" in error.message
        assert world.picture() == world.old
        return journal.RESTORED
    assert world.applied()
    return journal.APPLIED


def test_the_count(tmp_path: Path) -> None:
    """The faults below reach every call."""
    assert 20 < count(World(tmp_path).apply) < MOST


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
def test_r08_a_fault_at_every_call_of_a_change(tmp_path: Path, lasting: bool) -> None:
    outcomes = set()
    for number in range(1, MOST):
        world = World(tmp_path / str(number))
        with at_call(failing(number, after=number if lasting else 0)):
            outcome = one_of_three(world, world.apply)
        assert lasting or outcome != journal.FAILED
        outcomes.add(outcome)
        world.end()
    assert outcomes == {journal.APPLIED, journal.RESTORED} | ({journal.FAILED} if lasting else set())


def test_r08_a_fault_at_every_call_of_the_undo(tmp_path: Path) -> None:
    """The change fails at its very end, and then the undo fails too, once."""
    outcomes = set()
    for number in range(1, MOST):
        world = World(tmp_path / str(number))
        with at_call(failing(number)):
            outcomes.add(one_of_three(world, partial(world.apply, verify=broken)))
        world.end()
    assert outcomes == {journal.RESTORED, journal.FAILED}


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
def test_r12_a_fault_at_every_call_of_a_rollback(tmp_path: Path, lasting: bool) -> None:
    failed = 0
    for number in range(1, 40):
        world = World(tmp_path / str(number))
        entry = world.apply()
        with at_call(failing(number, after=number if lasting else 0)):
            try:
                ledger.rollback(world.state, entry.number)
            except HostError as error:
                assert error.message.startswith((journal.FAILED, "cannot open the ledger"))
                failed += 1
            else:
                assert world.picture() == world.old
        world.whole()
        world.end()
    assert failed > 5


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_r03_killed_at_every_call_of_a_change(tmp_path: Path, before: bool) -> None:
    kills = 0
    for number in range(1, MOST):
        world = World(tmp_path / str(number))
        dead = killed(world.apply, number, before)
        kills += dead
        world.whole()
        assert dead or world.applied()
        world.end()
    assert kills == count(World(tmp_path / "n").apply)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_r03_killed_at_every_call_of_a_rollback(tmp_path: Path, before: bool) -> None:
    kills = 0
    for number in range(1, 40):
        world = World(tmp_path / str(number))
        entry = world.apply()
        kills += killed(partial(ledger.rollback, world.state, entry.number), number, before)
        world.whole()
        world.end()
    assert kills > 5


def test_killed_at_every_call_and_then_applied_again(tmp_path: Path) -> None:
    """What a dead bawn left is named, not built upon."""
    refused = 0
    for number in range(1, MOST, 3):
        world = World(tmp_path / str(number))
        killed(world.apply, number, True)
        try:
            world.apply()
        except HostError as error:
            refused += "was interrupted" in error.message or "changed while" in error.message
        world.end()
    assert refused > 5
