"""Reading a policy is on the way of every run. Bounds are of the best of several, on a busy machine."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bawn.errors import PolicyError
from bawn.policy.parse import default_policy, parse_policy, toml
from tests.unit.test_policy_corpus import HERE

SRC = Path(__file__).parents[2] / "src"


def best(action: Callable[[], object], times: int = 15) -> float:
    """Milliseconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        found.append(1000 * (time.perf_counter() - start))
    return min(found)


def mounts(number: int, extra: str = "") -> str:
    row = (
        '[[profile.a.mount]]\nsource = "/srv/{n}"\nwrite = ["a", "b{n}"]\nmask = [".env", "*.pem", "k{n}"]\n'
    )
    return "version = 1\n[profile.a]\n" + "".join(row.format(n=n) + extra for n in range(number))


def test_the_sketch() -> None:
    text = (HERE / "good" / "sketch.toml").read_text()
    data = toml(text, "")
    assert best(lambda: parse_policy(text, "")) < 3
    assert best(lambda: parse_policy(text, "", data)) < 1.5  # as of a trusted policy
    assert best(default_policy) < 0.5


def test_five_hundred_mounts() -> None:
    text = mounts(500)
    assert len(parse_policy(text, "").profiles[0].mounts) == 500
    assert best(lambda: parse_policy(text, ""), 5) < 150


def test_five_hundred_problems() -> None:
    text = mounts(500, "mod = 'ro'\n")

    def refused() -> None:
        with pytest.raises(PolicyError) as caught:
            parse_policy(text, "")
        assert len(caught.value.problems) == 500

    assert best(refused, 3) < 1000


def test_the_import_is_light() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(SRC)!r}); before = set(sys.modules); "
        "import bawn.policy.parse, bawn.facts.policy_file, bawn.facts.trust, bawn.effects.trust; "
        "print('\\n'.join(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-IS", "-c", script], capture_output=True, text=True, check=True)
    foreign = {name.split(".")[0] for name in done.stdout.split()} - {"bawn"}
    assert not foreign & {
        "tomllib",
        "argparse",
        "difflib",
        "ipaddress",
        "typing",
        "hashlib",
        "string",
        "datetime",
    }
