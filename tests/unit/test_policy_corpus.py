"""Policies that load and policies that do not: the parser, its words, and the schema's agreement.

BAWN_UPDATE=1 writes the words anew; a person reads the difference.
"""

import os
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest

from bawn.errors import PolicyError
from bawn.policy.parse import parse_policy
from bawn.policy.schema import json_schema

HERE = Path(__file__).parents[1] / "golden" / "policies"
GOOD = sorted((HERE / "good").glob("*.toml"))
BAD = sorted((HERE / "bad").glob("*.toml"))
SCHEMA = jsonschema.Draft202012Validator(json_schema())
PROBLEM = re.compile(r"/p/bawn\.toml:([1-9][0-9]*): \S.*?: got .+?; allowed: .+?; fix: .+")
ACCEPTS = "# schema: accepts\n"


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "/p/bawn.toml")
    assert caught.value.exit_code == 2
    return caught.value.problems


def read(path: Path) -> str:
    return path.read_bytes().decode()  # line ends as they are


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_good(path: Path) -> None:
    text = read(path)
    parse_policy(text, "/p/bawn.toml")
    SCHEMA.validate(tomllib.loads(text))


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_bad(path: Path) -> None:
    found = problems(read(path))
    words = "\n".join(found) + "\n"
    golden = path.with_suffix(".txt")
    if os.environ.get("BAWN_UPDATE"):
        golden.write_text(words)
    assert words == golden.read_text()


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_every_problem_is_whole(path: Path) -> None:
    text = read(path)
    lines = []
    for problem in problems(text):
        match = PROBLEM.fullmatch(problem)
        assert match, problem
        assert problem.isprintable()  # nothing that a terminal would obey
        assert "hunter2" not in problem  # nothing that is a secret
        lines.append(int(match[1]))
    assert lines == sorted(lines)
    assert lines[-1] <= len(text.splitlines())


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_the_schema_agrees(path: Path) -> None:
    """It refuses too, unless the file says that only the parser can know."""
    text = read(path)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError):
        return
    assert SCHEMA.is_valid(data) == text.startswith(ACCEPTS)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_the_words_of_the_docs() -> None:
    """docs/policy.md shows two problems, cut."""
    page = (HERE.parents[2] / "docs" / "policy.md").read_text()
    shown = re.findall(r"^  /home/me/src/shop/bawn\.toml:.*$", page, re.MULTILINE)
    text = 'version = 1\n[profile.build]\n\nlimits.memory = "2g"\nworckdir = "."\n'
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "/home/me/src/shop/bawn.toml")
    assert caught.value.message in page
    assert len(shown) == len(caught.value.problems) == 2
    for cut, whole in zip(shown, caught.value.problems, strict=True):
        pattern = ".*".join(map(re.escape, cut.strip().split("…")))
        assert re.fullmatch(pattern, whole), whole
