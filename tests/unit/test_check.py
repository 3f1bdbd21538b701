"""`bawn check`: its three forms and its exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "home" / "proj"
    project.mkdir(parents=True)
    (project / ".env").write_text("x")
    (project / "CLAUDE.md").write_text("x")
    return project


def check(
    project: Path, *words: str, policy: str = "", home: Path | None = None
) -> subprocess.CompletedProcess[str]:
    (project / "bawn.toml").write_text(policy or "version = 1\n[profile.default]\n")
    env = {"PATH": os.environ["PATH"], "HOME": str(home or project.parent), "PYTHONPATH": str(SRC)}
    argv = [sys.executable, "-m", "bawn.cli", "check", *words]
    return subprocess.run(argv, cwd=project, env=env, capture_output=True, text=True, timeout=60)


def mine(data: dict[str, list[dict[str, str]]]) -> list[str]:
    """Rules of the mount list: whether runsc is installed here does not matter."""
    return [one["rule"] for one in data["findings"] if one["rule"] < "BWN7"]


def test_the_tree(project: Path) -> None:
    done = check(project, "--no-color")
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert f"rw  {project}  (the work directory)" in lines
    assert "    --  .env  (masked)" in lines
    assert "    ro  CLAUDE.md  (the host runs or obeys it)" in lines
    assert "    ro  bawn.toml  (the host runs or obeys it)" in lines
    assert "\x1b" not in done.stdout


def test_json(project: Path) -> None:
    data = json.loads(check(project, "--json").stdout)
    assert data["bawn_check"] == 1
    assert data["workdir"] == str(project)
    assert {bind["role"] for bind in data["binds"]} >= {"workdir", "mask", "protect"}
    assert mine(data) == []


def test_an_error_is_exit_1_in_every_form(project: Path) -> None:
    policy = 'version = 1\n[profile.default]\n[[profile.default.mount]]\nsource = "~/gone"\n'
    for form in ("--json", "--sarif", "--no-color"):
        done = check(project, form, policy=policy)
        assert done.returncode == 1, done.stderr
    data = json.loads(check(project, "--json", policy=policy).stdout)
    assert mine(data) == ["BWN202"]
    (place,) = [one["place"] for one in data["findings"] if one["rule"] == "BWN202"]
    assert place.startswith("bawn.toml:3 profile.default.mount[0]")
    results = json.loads(check(project, "--sarif", policy=policy).stdout)["runs"][0]["results"]
    (result,) = [one for one in results if one["ruleId"] == "BWN202"]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 3}


@pytest.mark.parametrize("policy", ["version = 1\n[profile.default]\nmuont = 1\n", "version = ", "x = 1\n"])
def test_a_bad_policy_is_exit_2(project: Path, policy: str) -> None:
    done = check(project, policy=policy)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "bawn:" in done.stderr


def test_the_home_is_refused_at_once(project: Path) -> None:
    """Not walked: a home may hold millions of files."""
    data = json.loads(check(project.parent, "--json", home=project.parent).stdout)
    assert "BWN105" in mine(data)
    assert [bind for bind in data["binds"] if bind["role"] not in ("system", "bawn")] == []
