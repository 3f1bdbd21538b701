"""Real input: the pinned agent CLIs, npm and pytest of real packages, at their own paths in the box."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.system.conftest import Person, need, owner_of, policy

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


PACKAGE = {
    "name": "real-package",
    "version": "1.0.0",
    "private": True,
    "scripts": {
        "postinstall": "node -e \"require('fs').writeFileSync('built', 'yes')\"",
        "test": "node --test",
    },
    "dependencies": {"ms": "2.1.3", "semver": "7.6.3"},
}
TEST = """
const test = require('node:test'), assert = require('node:assert'), fs = require('fs')
test('real dependencies', () => {
  assert.strictEqual(require('ms')('2 days'), 172800000)
  assert.ok(require('semver').gt('2.0.0', '1.9.9'))
  fs.writeFileSync('made-by-test', 'x')
})
"""


@pytest.fixture(scope="session")
def npm_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with its lock and a filled npm cache, by the ordinary client on the host."""
    need("npm", "node", root=False)
    made = tmp_path_factory.mktemp("npm")
    (made / "package.json").write_text(json.dumps(PACKAGE))
    (made / "real.test.js").write_text(TEST)
    for words in (["install", "--package-lock-only"], ["ci", "--ignore-scripts"]):
        subprocess.run(
            ["npm", *words, "--cache", ".cache", "--omit-lockfile-registry-resolved", "--no-audit"],
            cwd=made, check=True, capture_output=True,
        )  # fmt: skip
    shutil.rmtree(made / "node_modules")
    return made


@pytest.fixture(scope="session")
def registry() -> str:
    """Part of the key of npm's cache: the one this machine is set up with."""
    done = subprocess.run(["npm", "config", "get", "registry"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def give(source: Path, work: Path) -> None:
    """Copies a tree into the work directory, owned as it is."""
    shutil.copytree(source, work, dirs_exist_ok=True)
    uid, gid = owner_of(work)
    subprocess.run(["chown", "-R", f"{uid}:{gid}", str(work)], check=True)


def test_npm_ci_and_test(person: Person, work: Path, npm_package: Path, registry: str) -> None:
    give(npm_package, work)
    policy(work, '[profile.default]\npass_env = ["npm_config_registry"]\n', person)
    script = "npm ci --offline --cache .cache --no-audit && npm test"
    done = person.sh(script, work, timeout=240, npm_config_registry=registry)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("built", "made-by-test", "node_modules/ms/index.js"):
        assert (work / name).exists(), done.stdout
        info = (work / name).stat()
        assert (info.st_uid, info.st_gid) == owner_of(work)


@pytest.fixture(scope="session")
def pypi_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """six, from its source distribution with its own tests, and pytest beside it."""
    made = tmp_path_factory.mktemp("pypi")
    pip = ["/usr/bin/python3", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run(
        [*pip, "download", "--no-deps", "--no-binary", ":all:", "--dest", str(made), "six==1.17.0"],
        check=True, capture_output=True,
    )  # fmt: skip
    (archive,) = made.glob("six*.tar.gz")
    subprocess.run(["tar", "-xzf", archive, "--strip-components=1", "-C", made], check=True)
    subprocess.run(
        [*pip, "install", "--target", str(made / ".site"), "pytest"], check=True, capture_output=True
    )
    return made


def test_pytest_of_a_real_package(person: Person, work: Path, pypi_package: Path) -> None:
    give(pypi_package, work)
    done = person.sh("PYTHONPATH=.site:. /usr/bin/python3 -m pytest -q test_six.py", work, timeout=240)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    made = [path for path in work.rglob("*.pyc")]
    assert made
    assert {(p.stat().st_uid, p.stat().st_gid) for p in made} == {owner_of(work)}
