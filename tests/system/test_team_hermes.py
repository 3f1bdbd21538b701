"""Hermes' own code is the oracle: it reports the values that `bawn team audit` says it uses."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.system.conftest import need
from tests.unit.hermes_homes import HARD, HOMES, Home, make

PYTHON = os.environ.get("BAWN_HERMES_PYTHON", "/opt/bawn-hermes/bin/python")
ORACLE = Path(__file__).parent / "hermes_oracle.py"
SRC = Path(__file__).parents[2] / "src"
KEYS = {"backend": "env_type"}
# What Hermes does not read while the backend is another one: then nothing depends on it.
DOCKER_ONLY = ("docker_volumes", "docker_forward_env", "docker_env", "docker_extra_args", "container_")


def oracle(home: Path, environ: dict[str, str]) -> dict[str, Any]:
    """What Hermes uses, without any network."""
    env = {"PATH": os.environ["PATH"], **environ, "HERMES_HOME": str(home)}
    done = subprocess.run(
        ["unshare", "--net", PYTHON, str(ORACLE)],
        env=env,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ORACLE ")]
    assert lines, done.stderr[-2000:]
    return dict(json.loads(lines[0].removeprefix("ORACLE ")))


def bawn(home: Path, environ: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SRC), "XDG_STATE_HOME": str(home.parent), **environ}
    return subprocess.run(
        [sys.executable, "-m", "bawn.cli", "team", *words, "--home", str(home)],
        env=env, cwd="/", capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def audit(home: Path, environ: dict[str, str]) -> dict[str, Any]:
    done = bawn(home, environ, "audit", "hermes", "--json")
    assert done.stdout, done.stderr
    return dict(json.loads(done.stdout)["profiles"][0])


def agree(home: Path, environ: dict[str, str]) -> dict[str, Any]:
    """Holds ours against theirs, key by key."""
    ours, theirs = audit(home, environ), oracle(home, environ)
    values = {one["key"]: one["value"] for one in ours["settings"]}
    for key, value in values.items():
        section, _, name = key.partition(".")
        skipped = values["terminal.backend"] != "docker" and name.startswith(DOCKER_ONLY)
        if section == "terminal" and not skipped:
            assert theirs["terminal"][KEYS.get(name, name)] == value, key
    assert theirs["strict"] == values["gateway.strict"]
    trusted = values["gateway.trust_recent_files"]
    assert theirs["recent"] == (values["gateway.trust_recent_files_seconds"] if trusted else 0)
    allowed = [
        path.replace("~", environ["HOME"], 1)
        for path in values["gateway.media_delivery_allow_dirs"]
        if path.startswith(("/", "~"))
    ]
    assert theirs["roots"][len(theirs["roots"]) - len(allowed) :] == allowed
    mounted = sorted(
        [one["source"], one["target"]]
        for one in ours["mounts"]
        if one["origin"].startswith("automatic") and one["target"].startswith("/root/.hermes/")
    )
    assert [pair for pair in theirs["mounts"] if not _made_by_hermes(pair, ours)] == mounted
    return ours


def _made_by_hermes(pair: list[str], ours: dict[str, Any]) -> bool:
    """Hermes makes some directories while it starts: those it made after our look are empty."""
    path = Path(pair[0])
    return (
        path.is_dir() and not any(path.iterdir()) and pair[0] not in [one["source"] for one in ours["mounts"]]
    )


@pytest.mark.parametrize("name", HOMES)
def test_hermes_says_the_same(tmp_path: Path, name: str) -> None:
    need(PYTHON, "unshare")
    agree(*make(tmp_path, HOMES[name]))


@pytest.mark.parametrize(
    "name", ["nothing_configured", "environment_where_config_is_silent", "quoted_on_is_off"]
)
def test_hardened_as_hermes_reads_it_and_back(tmp_path: Path, name: str) -> None:
    """Hermes itself reports the hardened values; rollback gives the same bytes."""
    need(PYTHON, "unshare")
    home, environ = make(tmp_path, HOMES[name])
    config = home / "config.yaml"
    old = config.read_bytes() if config.exists() else None
    done = bawn(home, environ, "harden", "hermes", "--profile", "default", "--allow-dir", "/vault/out")
    assert "applied and verified" in done.stdout, done.stdout + done.stderr
    theirs = oracle(home, environ)
    assert theirs["terminal"]["env_type"] == "docker"
    assert theirs["terminal"]["docker_network"] is False
    assert theirs["terminal"]["container_persistent"] is False
    assert (theirs["strict"], theirs["recent"], theirs["roots"][-1]) == (True, 0.0, "/vault/out")
    assert bawn(home, environ, "rollback", "hermes").returncode == 0
    assert (config.read_bytes() if config.exists() else None) == old


def test_the_oracle_can_disagree(tmp_path: Path) -> None:
    need(PYTHON, "unshare")
    home, environ = make(tmp_path, Home({"home/config.yaml": HARD}))
    ours = oracle(home, environ)
    (home / "config.yaml").write_text(HARD.replace("strict: true", "strict: false"))
    assert oracle(home, environ)["strict"] != ours["strict"]
