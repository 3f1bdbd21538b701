"""Small real packages, fetched by the ordinary clients on the host, for tests in boxes without a network."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.conftest import need, owner_of

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


@pytest.fixture(scope="session")
def pypi_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """six, from its source distribution with its own tests, and pytest beside it."""
    made = tmp_path_factory.mktemp("pypi")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
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


NPM_TEST = "npm ci --offline --cache .cache --no-audit && npm test"
PYTEST = "PYTHONPATH=.site:. /usr/bin/python3 -m pytest -q test_six.py"


def npm_was_tested(work: Path) -> None:
    """The package was built and tested, and everything belongs to the owner of the directory."""
    for name in ("built", "made-by-test", "node_modules/ms/index.js"):
        info = (work / name).stat()
        assert (info.st_uid, info.st_gid) == owner_of(work)
