"""`bawn send`: verdicts as text and JSON, exit codes, copies; and that no run imports the guard."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bawn.cli.main import main
from bawn.facts import dirs
from tests.unit.outbound_world import World

SRC = Path(__file__).parents[2] / "src"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """With a policy in the person's own configuration, which is trusted."""
    made = World(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    own = dirs.Dirs(str(made.home / "config"), str(made.home / "state"), str(made.home / "run"))
    monkeypatch.setattr(dirs, "observe", lambda: own)
    made.write(
        made.home / "config/bawn.toml",
        b'version = 1\n[profile.default]\nworkdir = "/usr"\n[outbound]\nroots = ["~/vault"]\n',
    )
    monkeypatch.chdir(made.top)
    return made


def send(monkeypatch: pytest.MonkeyPatch, text: str, *words: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    return main(["send", *words])


def test_check(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert send(monkeypatch, "MEDIA:~/vault/a.md", "check") == 0
    assert capsys.readouterr().out == f"allowed BWN900 {world.vault}/a.md\n"
    assert send(monkeypatch, "~/vault/a.md, /etc/passwd\u202e", "check") == 1
    out = capsys.readouterr().out
    assert f"allowed BWN900 {world.vault}/a.md" in out
    assert "denied BWN901 /etc/passwd\\u202e: outside the roots" in out and "  fix  " in out
    assert send(monkeypatch, "/etc/passwd", "check", "--hide-denied", "--json") == 1
    out = capsys.readouterr().out
    assert "passwd" not in out and json.loads(out)["denied"] == 1
    assert send(monkeypatch, "nothing", "check") == 0
    assert [json.loads(line)["rule"] for line in (world.home / "state/outbound.log").open()] == [
        "BWN900", "BWN900", "BWN901", "BWN901",
    ]  # fmt: skip


def test_data_and_text(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    task = json.dumps({"summary": "done", "metadata": {"artifacts": ["~/vault/a.md", "/etc/passwd"]}})
    assert send(monkeypatch, task, "check", "--json") == 1
    found = json.loads(capsys.readouterr().out)["files"]
    assert [(one["where"], one["allowed"]) for one in found] == [
        ("metadata.artifacts[0]", True),
        ("metadata.artifacts[1]", False),
    ]
    world.write(tmp_path / "reply.txt", b"[see] ~/vault/a.md")
    assert main(["send", "check", str(tmp_path / "reply.txt")]) == 0
    assert send(monkeypatch, "{not JSON} ~/vault/a.md", "check") == 0
    assert send(monkeypatch, "{not JSON} ~/vault/a.md", "check", "--data") == 2
    assert send(monkeypatch, '{"a": "x", "a": "y"}', "check", "--data") == 2
    assert send(monkeypatch, "[" * 50 + '"/v/a.md"' + "]" * 50, "check") == 2
    assert send(monkeypatch, "x" * ((4 << 20) + 1), "check") == 2
    assert main(["send", "check", str(tmp_path / "none")]) == 2
    world.write(tmp_path / "binary", b"\xff")
    assert main(["send", "check", str(tmp_path / "binary")]) == 2


def test_stage_and_unstage(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["send", "unstage", "0" * 32]) == 1
    assert send(monkeypatch, "~/vault/a.md /etc/passwd", "stage", "--json") == 1
    one, _ = json.loads(capsys.readouterr().out)["files"]
    assert Path(one["staged"]).read_bytes() == b"a report"
    assert main(["send", "unstage", one["token"]]) == 0
    assert not os.path.exists(one["staged"])
    assert send(monkeypatch, "~/vault/a.md", "stage") == 0
    assert "  copy " in capsys.readouterr().out


def test_a_policy_that_nobody_trusts_lets_nothing_leave(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world.write(world.top / "bawn.toml", (world.home / "config/bawn.toml").read_bytes())
    assert send(monkeypatch, "~/vault/a.md", "check") == 1
    captured = capsys.readouterr()
    assert not captured.out and "trust" in captured.err
    world.write(
        world.home / "config/bawn.toml", b'version = 1\n[profile.default]\n[outbound]\nroots = ["~"]\n'
    )
    (world.top / "bawn.toml").unlink()
    assert send(monkeypatch, "~/vault/a.md", "check") == 2
    assert "outbound.roots[0]" in capsys.readouterr().err


def test_no_policy_no_file(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (world.home / "config/bawn.toml").unlink()
    assert send(monkeypatch, "~/vault/a.md", "check") == 1
    assert "BWN902" in capsys.readouterr().out


def test_no_run_imports_the_guard() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(SRC)!r}); import bawn.cli.main, bawn.cli.run, "
        "bawn.effects.box_run, bawn.effects.gvisor; print('\\n'.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-IS", "-c", script], capture_output=True, text=True, check=True)
    assert "bawn.cli.run" in done.stdout
    assert not [name for name in done.stdout.split() if "outbound" in name or name == "bawn.cli.send"]
