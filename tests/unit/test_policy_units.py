"""Sizes, times and processors: exact, in whole numbers, and never guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bawn.policy import units
from bawn.policy.units import NotAllowed


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2GiB", 2 << 30),
        ("1.5GiB", 3 << 29),
        ("1.1GiB", 1181116006),  # rounded down
        ("64MiB", 64 << 20),
        ("2GB", 2_000_000_000),
        ("500 MB", 500_000_000),
        ("1kB", 1000),
        ("1KB", 1000),
        ("7B", 7),
        (7, 7),
    ],
)
def test_sizes(text: object, value: int) -> None:
    assert units.size(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("1.5h", 5400), ("1d", 86400), ("0.5s", 0), (60, 60)],
)
def test_times(text: object, value: int) -> None:
    assert units.duration(text) == value


@pytest.mark.parametrize(("number", "value"), [(2, 2000), (1.5, 1500), (0.1, 100), (0.0004, 0)])
def test_cpus(number: float, value: int) -> None:
    assert units.cpus(number) == value


@pytest.mark.parametrize(
    "text",
    ["", "GiB", "2", "2g", "2G", "2gib", "2 GiB ", " 2GiB", "-2GiB", "+2GiB", "2GiB\n", "0x2GiB", "1e3MiB",
     "2,5GiB", "2..5GiB", ".5GiB", "2.GiB", "٢GiB", "2ＧiB", "9" * 16 + "B", "inf", True, None, 1.5, [2], {}],
)  # fmt: skip
def test_no_sizes(text: object) -> None:
    with pytest.raises(NotAllowed):
        units.size(text)


@pytest.mark.parametrize("text", ["", "2", "1h30m", "2H", "-1s", "2hours", "1w", "90", True, None, 1.5, "٢s"])
def test_no_times(text: object) -> None:
    with pytest.raises(NotAllowed):
        units.duration(text)


@pytest.mark.parametrize("number", [True, "2", None, float("nan"), float("inf"), float("-inf"), 10**400, [1]])
def test_no_cpus(number: object) -> None:
    with pytest.raises(NotAllowed):
        units.cpus(number)


@pytest.mark.parametrize(
    ("text", "instead"),
    [("2g", '"2GiB"'), ("2G", '"2GiB"'), ("1.5t", '"1.5TiB"'), ("64 megabytes", '"64MiB"'), ("5x", '"5MiB"')],
)
def test_the_size_that_was_meant(text: str, instead: str) -> None:
    with pytest.raises(NotAllowed) as caught:
        units.size(text)
    assert caught.value.instead == instead
    units.size(instead.strip('"'))


@pytest.mark.parametrize(("text", "instead"), [("2hours", '"2h"'), ("30min", '"30m"'), ("5x", '"5s"')])
def test_the_time_that_was_meant(text: str, instead: str) -> None:
    with pytest.raises(NotAllowed) as caught:
        units.duration(text)
    assert caught.value.instead == instead


@given(st.integers(0, 1 << 44))
def test_shown_is_read_back(value: int) -> None:
    assert units.size(units.show_size(value)) == value
    assert units.duration(units.show_duration(value)) == value


@given(st.integers(0, 1_024_000))
def test_shown_cpus_are_read_back(value: int) -> None:
    assert units.cpus(float(units.show_cpus(value))) == value
