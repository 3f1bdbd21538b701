"""Real input: the pinned agent CLIs, npm and pytest of real packages, at their own paths in the box."""

import json
import shutil
from pathlib import Path

import pytest

from tests.system.conftest import Person, need, owner_of, policy
from tests.system.packages import NPM_TEST, PYTEST, give, npm_was_tested

pytestmark = pytest.mark.system

CLAUDE, CODEX = "2.1.332", "0.145.0"


@pytest.mark.parametrize(("agent", "said"), [("claude", CLAUDE), ("codex", CODEX)])
def test_one_word(person: Person, work: Path, agent: str, said: str) -> None:
    need(agent, root=False)
    done = person.bawn(agent, "--version", cwd=work, timeout=120)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


@pytest.mark.parametrize(("agent", "said"), [("claude", CLAUDE), ("codex", CODEX)])
def test_by_profile(person: Person, work: Path, agent: str, said: str) -> None:
    need(agent, root=False)
    policy(work, f'[profile.build]\nagent = "{agent}"\n', person)
    plan = json.loads(person.bawn("plan", "--json", cwd=work).stdout)
    done = person.bawn("run", "-q", "--", *plan["command"], "--version", cwd=work, timeout=120)
    assert said in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("agent", "variable", "directory"),
    [("claude", "CLAUDE_CONFIG_DIR", ".claude"), ("codex", "CODEX_HOME", ".codex")],
)
def test_the_config_directory_can_be_renamed_over(
    person: Person, work: Path, agent: str, variable: str, directory: str
) -> None:
    """What an agent does to its config: a lock directory, a temporary file, a rename over."""
    need(agent, root=False)
    policy(work, f'[profile.build]\nagent = "{agent}"\n', person)
    script = (
        f'cd "${variable}" && pwd && mkdir .lock && for f in $(find . -type f); do cp "$f" t && mv t "$f"; '
        "done && find . -type f | sort && rmdir .lock"
    )
    done = person.sh(script, work)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split()
    assert lines[0] == f"/home/agent/{directory}"
    wanted = ["./.claude.json", "./settings.json"] if agent == "claude" else ["./config.toml"]
    assert lines[1:] == wanted


def test_only_named_credentials_are_copied(person: Person, work: Path) -> None:
    need("claude", root=False)
    source = person.make(person.home / ".claude/.credentials.json", '{"token": "T"}')
    try:
        policy(work, '[profile.default]\nagent = "claude"\n', person)
        assert "token" not in person.sh("cat ~/.claude/.credentials.json", work).stdout
        policy(
            work,
            '[profile.default]\nagent = "claude"\ncredentials = ["~/.claude/.credentials.json"]\n',
            person,
        )
        done = person.sh("cat ~/.claude/.credentials.json; stat -c %a ~/.claude/.credentials.json", work)
        assert done.stdout == '{"token": "T"}600\n', done.stderr
    finally:
        shutil.rmtree(source.parent)


def test_secrets_arrive_by_name_and_are_shown_nowhere(person: Person, work: Path) -> None:
    person.make(work / "key", "from-file\n")
    policy(
        work,
        '[profile.default]\nmask = ["key"]\n'
        f'secrets = ["A_KEY", {{ name = "B_KEY", file = "{work}/key" }}, "C_KEY"]\n',
        person,
    )
    done = person.bawn("run", "--", "sh", "-c", "echo $A_KEY $B_KEY $C_KEY", cwd=work, A_KEY="from-env")
    assert done.stdout == "from-env from-file\n", done.stderr
    assert "BWN704" in done.stderr
    for words in (["plan"], ["plan", "--json"], ["plan", "--bundle"], ["runs", "--json"]):
        shown = person.bawn(*words, *(["--", "x"] if words[0] == "plan" else []), cwd=work, A_KEY="from-env")
        assert "from-env" not in shown.stdout + shown.stderr
        assert "from-file" not in shown.stdout + shown.stderr


def test_npm_ci_and_test(person: Person, work: Path, npm_package: Path, registry: str) -> None:
    give(npm_package, work)
    policy(work, '[profile.default]\npass_env = ["npm_config_registry"]\n', person)
    done = person.sh(NPM_TEST, work, timeout=240, npm_config_registry=registry)
    assert done.returncode == 0, done.stdout + done.stderr
    npm_was_tested(work)


def test_pytest_of_a_real_package(person: Person, work: Path, pypi_package: Path) -> None:
    give(pypi_package, work)
    done = person.sh(PYTEST, work, timeout=240)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    made = [path for path in work.rglob("*.pyc")]
    assert made
    assert {(p.stat().st_uid, p.stat().st_gid) for p in made} == {owner_of(work)}
