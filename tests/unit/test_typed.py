"""bawn's NamedTuple does what typing's does."""

import pickle
from typing import NamedTuple as Typings

import pytest

from bawn.plan.model import Tmpfs
from bawn.typed import NamedTuple


class Ours(NamedTuple):
    """Doc."""

    a: int
    b: str = "x"

    @property
    def both(self) -> str:
        return f"{self.a}{self.b}"


class Theirs(Typings):
    a: int
    b: str = "x"


def test_alike() -> None:
    assert Ours._fields == Theirs._fields
    assert Ours._field_defaults == Theirs._field_defaults
    assert tuple(Ours(1)) == tuple(Theirs(1)) == (1, "x")
    assert Ours(1)._asdict() == Theirs(1)._asdict()
    assert Ours(b="z", a=2)._replace(a=3) == (3, "z")
    assert repr(Ours(1)) == "Ours(a=1, b='x')"
    assert Ours(1) == Ours(1)
    assert hash(Ours(1)) == hash(Ours(1))
    assert Ours._make([4, "q"]).both == "4q"
    assert Ours.__doc__ == "Doc."
    assert isinstance(Ours(1), Ours)
    assert not isinstance(Ours(1), Tmpfs)


def test_frozen_and_strict() -> None:
    with pytest.raises(AttributeError):
        Ours(1).a = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Ours(1).c = 2  # type: ignore[attr-defined]
    for arguments, named in (((), {}), ((1, "x", 3), {}), ((1,), {"a": 2}), ((1,), {"c": 2})):
        with pytest.raises(TypeError):
            Ours(*arguments, **named)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Ours(1)._replace(c=1)  # type: ignore[call-arg]


def test_pickles() -> None:
    value = Tmpfs("/tmp", 1, 0o700, True)
    assert pickle.loads(pickle.dumps(value)) == value
