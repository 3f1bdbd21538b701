"""`bawn init` and its starter policy; `bawn policy`."""

import itertools
import json
import os
import re
import stat
from pathlib import Path

import pytest

from bawn.cli.init import look_around
from bawn.cli.main import main
from bawn.facts import agents, dirs
from bawn.facts.policy_file import find
from bawn.policy import starter
from bawn.policy.model import DEFAULT_MASK, Policy
from bawn.policy.parse import parse_policy, select
from bawn.policy.patterns import Matcher
from bawn.policy.reference import reference
from bawn.policy.schema import json_schema
from bawn.policy.starter import Around, starter_text
from bawn.teams.presets import PRESETS
from tests.unit.test_trust import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A repository without a policy; HOME is beside it."""
    world = World(tmp_path.resolve())
    world.file.unlink()
    (world.repo / ".git").mkdir()
    (world.repo / "src" / "deep").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(dirs, "observe", lambda: world.dirs)
    monkeypatch.setattr(agents, "on_path", lambda name: name == "codex")
    monkeypatch.chdir(world.repo / "src" / "deep")
    return world


def commented_in(text: str) -> Policy:
    """The policy with every field that the starter shows as a comment."""
    text = re.sub(r"(?m)^# (?=\[\[|(agent|secrets|git_links|source|mode|write) *=)", "", text)
    return parse_policy(text, "/p/bawn.toml")


ODD = ("", "/x/.git/worktrees/y", "../.git/modules/z", "/x\x1b[2J\\\"'", "/a # b")


@pytest.mark.parametrize(
    ("agent", "env", "git_dir"),
    [
        *itertools.product(
            [(), ("claude",), ("codex", "claude")],
            [(), (".env",), ("a/.env.local", "prod.env", ".envrc"), ('x"\\\n.env',)],
            ODD,
        )
    ],
)
def test_every_starter_loads(
    agent: tuple[str, ...],
    env: tuple[str, ...],
    git_dir: str,
) -> None:
    text = starter_text(Around(agent, env, git_dir))
    assert all(char == "\n" or char.isprintable() for char in text)
    assert max(map(len, text.splitlines())) <= 110
    profile = select(parse_policy(text, "/p/bawn.toml"), None)
    assert profile.name == "default"
    assert profile.agent == (agent[0] if agent else "")
    assert (profile.workdir, profile.egress, profile.engine) == (".", "none", "gvisor")
    masks = Matcher(profile.mask)
    assert profile.mask[:2] == DEFAULT_MASK
    for path in env:
        name = path.rpartition("/")[2]
        assert masks.match(name, path)
    full = select(commented_in(text), None)
    assert full.secrets
    assert full.mounts
    assert full.git_links == bool(git_dir)


def test_the_table_is_that_of_the_presets() -> None:
    for name, key in starter.AGENTS.items():
        assert key in PRESETS[name].secrets


def test_init(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    (world.repo / ".env").write_text("")
    assert main(["init"]) == 0
    out = capsys.readouterr().out
    assert f"wrote {world.file} and trusted it\n" in out
    assert "bawn check" in out
    assert world.status().trusted
    assert stat.S_IMODE(world.file.stat().st_mode) == 0o644
    assert world.file.stat().st_uid == world.repo.stat().st_uid
    text = world.file.read_text()
    assert 'agent        = "codex"' in text
    assert "# Here: .env." in text
    assert [path.name for path in world.repo.iterdir() if "toml" in path.name] == ["bawn.toml"]


def test_never_over_another(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.write("mine")
    assert main(["init"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert world.file.read_text() == "mine"


def test_force_keeps_every_copy(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.write("first")
    world.file.chmod(0o600)
    assert main(["init", "--force"]) == 0
    world.write("second")
    assert main(["init", "--force"]) == 0
    assert f"the old one is {world.file}.2.bak" in capsys.readouterr().out
    assert (world.repo / "bawn.toml.1.bak").read_text() == "first"
    assert stat.S_IMODE((world.repo / "bawn.toml.1.bak").stat().st_mode) == 0o600
    assert (world.repo / "bawn.toml.2.bak").read_text() == "second"
    assert world.status().trusted


def test_force_does_not_follow_a_link(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    target = world.repo.parent / "target"
    target.write_text("precious")
    world.file.symlink_to(target)
    assert main(["init", "--force"]) == 2
    assert target.read_text() == "precious"
    assert "not a regular file" in capsys.readouterr().err


def test_a_file_made_in_between_is_not_replaced(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write("theirs")
    monkeypatch.setattr(os.path, "lexists", lambda path: False)
    assert main(["init", "--dir", str(world.repo)]) == 2
    assert world.file.read_text() == "theirs"


def test_a_failed_write_leaves_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    assert main(["init"]) == 1
    assert not world.file.exists()


def test_another_directory(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["init", "--dir", str(world.repo / "src")]) == 0
    found = find(str(world.repo / "src"), str(world.config), None)
    assert found
    assert found.path == str(world.repo / "src" / "bawn.toml")
    assert main(["init", "--dir", str(world.repo / "missing")]) == 2


def test_not_where_no_box_is_given(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert main(["init", "--dir", "/"]) == 2
    assert main(["init", "--dir", str(tmp_path / "home")]) == 2
    (tmp_path / "home" / ".git").mkdir()  # dotfiles in a repository
    monkeypatch.chdir(tmp_path / "home")
    assert main(["init"]) == 2
    world.repo.chmod(0o777)
    assert main(["init", "--dir", str(world.repo)]) == 2
    assert not world.file.exists()


def test_outside_of_a_repository(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    monkeypatch.chdir(tmp_path / "plain")
    assert main(["init"]) == 0
    assert (tmp_path / "plain" / "bawn.toml").exists()


def test_a_worktree(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {world.repo}/.git/worktrees/tree\n")
    monkeypatch.chdir(tree)
    assert main(["init"]) == 0
    text = (tree / "bawn.toml").read_text()
    assert f"#   {world.repo}/.git/worktrees/tree\n" in text
    assert "# git_links = true" in text


def test_a_poisoned_git_file_says_nothing_in_the_policy(world: World, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_bytes(b"gitdir: /x\r[profile.default]\x1b]0;\nmask = []\n")
    assert main(["init", "--dir", str(tree)]) == 0
    assert select(parse_policy((tree / "bawn.toml").read_text(), ""), None).mask == DEFAULT_MASK


def test_look_around(world: World) -> None:
    files = ("src/.env", "src/prod.env", "node_modules/x/.env", ".git/.env", "src/.environment")
    for name in files:
        path = world.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    found = look_around(str(world.repo))
    assert found == Around(("codex",), ("src/.env", "src/prod.env"), "")


def test_look_around_ends(world: World) -> None:
    for number in range(60):
        (world.repo / f"d{number}").mkdir()
        for name in range(60):
            (world.repo / f"d{number}" / f"f{name}").touch()
    (world.repo / "zz").mkdir()
    (world.repo / "zz" / ".env").touch()
    assert look_around(str(world.repo)).env_files == ()  # beyond what it looks at; masked all the same


def test_policy_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema()


def test_policy_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "fields"]) == 0
    assert capsys.readouterr().out == reference()


@pytest.mark.parametrize("words", [["policy"], ["policy", "x"]])
def test_policy_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
