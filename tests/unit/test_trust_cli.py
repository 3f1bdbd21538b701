"""`bawn trust`: shows, asks, remembers; and never says yes by itself."""

import io
from pathlib import Path

import pytest

from bawn.cli import trust as cli
from bawn.cli.main import main
from bawn.errors import TrustError
from bawn.facts import dirs
from tests.unit.test_trust import TEXT, WIDER, World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path.resolve())
    monkeypatch.setattr(dirs, "observe", lambda: world.dirs)
    monkeypatch.chdir(world.repo)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return world


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("os.isatty", lambda fd: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_without_a_terminal_nothing_is_trusted(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust"]) == 1
    out, err = capsys.readouterr()
    assert TEXT in out
    assert "no terminal to ask at; --yes" in err
    assert not world.status().trusted


def test_a_yes_from_a_pipe_is_no_answer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert main(["trust"]) == 1
    assert not world.status().trusted


@pytest.mark.parametrize(
    ("text", "code"),
    [("y\n", 0), ("YES\n", 0), ("n\n", 1), ("\n", 1), ("", 1), ("yes please\n", 1), ("j\n", 1)],
)
def test_the_answer(world: World, monkeypatch: pytest.MonkeyPatch, text: str, code: int) -> None:
    answer(monkeypatch, text)
    assert main(["trust"]) == code
    assert world.status().trusted == (code == 0)


def test_yes_for_scripts(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust", "--yes"]) == 0
    assert f"{world.file}: trusted\n" in capsys.readouterr().out
    assert main(["trust"]) == 0
    assert capsys.readouterr().out == f"{world.file}: it is as you trusted it\n"


def test_a_change_is_shown_as_a_diff(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.trust()
    world.write(WIDER)
    assert main(["trust", "--show"]) == 1
    out = capsys.readouterr().out
    assert "\n+mask = []\n" in out
    assert "--- as trusted" in out
    assert "\n+version" not in out
    assert "it has changed since you trusted it" in out
    assert not world.status().trusted


def test_show_of_a_trusted_one_is_the_whole_text(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.trust()
    assert main(["trust", "--show"]) == 0
    assert TEXT in capsys.readouterr().out


def test_show_never_asks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "y\n")
    assert main(["trust", "--show", "--yes"]) == 1
    assert not world.status().trusted


def test_revoke(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.trust()
    assert main(["trust", "--revoke"]) == 0
    assert main(["trust", "--revoke"]) == 0
    assert "trusted no longer" in (out := capsys.readouterr().out)
    assert "was not trusted" in out
    assert not world.status().trusted


def test_revoke_what_is_gone(world: World) -> None:
    world.trust()
    entry = world.entry()
    world.file.unlink()
    assert main(["trust", "--revoke", str(world.file)]) == 0
    assert not entry.exists()
    assert main(["trust", "--revoke"]) == 2  # nothing here or above


def test_by_name_and_by_directory(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert main(["trust", "--yes", str(world.repo)]) == 0
    assert world.status().trusted
    assert main(["trust", "--revoke", str(world.repo)]) == 0
    assert not world.status().trusted
    assert main(["trust", "--yes", str(world.repo / "missing.toml")]) == 2


def test_the_fix_of_a_refusal_is_enough(world: World) -> None:
    """Also for a link: the command that a refusal names makes the next run pass."""
    from bawn.effects.trust import require

    folder = world.repo / "sub"
    folder.mkdir()
    (folder / "bawn.toml").symlink_to(world.file)
    for start in ("repo", "repo/sub"):
        with pytest.raises(TrustError) as caught:
            require(world.find(start), world.dirs, None)
        words = caught.value.fix.partition("bawn ")[2].split()
        assert main([*words, "--yes"]) == 0
        require(world.find(start), world.dirs, None)


def test_what_does_not_load_is_not_asked_about(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world.write("version = 1\n[profile.default]\nworckdir = '.'\n")
    answer(monkeypatch, "y\n")
    assert main(["trust"]) == 2
    assert "did you mean workdir?" in capsys.readouterr().err
    assert not world.status().trusted


def test_what_a_terminal_would_obey_is_shown_escaped(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """An agent hides a line: by an escape sequence, a carriage return, or by turning the text round."""
    world.file.write_bytes((TEXT + "# \x1b[8m \u202e \u2066 \x9b \r\x08 \u200b\n").encode())
    assert main(["trust", "--show"]) == 1
    shown = capsys.readouterr().out
    assert all(char == "\n" or char.isprintable() for char in shown)
    assert "\\x1b[8m \\u202e \\u2066 \\x9b \\r\\x08 \\u200b" in shown


def test_a_diff_hides_no_line_either(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.trust()
    world.file.write_bytes((TEXT + "# a\x0cb\u2028c\x85d\n").encode() + b"# \xff\x1b\n")
    assert main(["trust", "--show"]) == 1
    shown = capsys.readouterr().out
    assert "\n+# a\\x0cb\\u2028c\\x85d\n" in shown
    assert "\n+# \\xff\\x1b\n" in shown


def test_a_name_is_escaped_too(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = world.repo / "x\x1b[2J"
    folder.mkdir()
    (folder / "bawn.toml").write_text(TEXT)
    monkeypatch.chdir(folder)
    main(["trust", "--show"])
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err


def test_ask_shows_on_stderr_alone(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`bawn run` leaves stdout to its command."""
    answer(monkeypatch, "y\n")
    assert cli.ask(world.find(), world.status())
    out, err = capsys.readouterr()
    assert out == ""
    assert TEXT in err
    assert f"Obey {world.file} as shown? [y/N]" in err


def test_run_refuses_what_is_not_trusted(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.isatty", lambda fd: False)
    assert main(["run", "--", "true"]) == 125
    assert f"fix: read it, then: bawn trust {world.file}" in capsys.readouterr().err


def test_a_refusal_is_escaped_too(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = world.repo / "x\x1b[31m"
    folder.mkdir()
    (folder / "bawn.toml").write_text(TEXT)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("os.isatty", lambda fd: False)
    assert main(["run", "true"]) == 125
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "x\\x1b[31m/bawn.toml is not trusted" in said


@pytest.mark.parametrize("words", [["trust"], ["init"], ["check"], ["run", "true"]])
def test_a_working_directory_that_is_gone(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    (world.repo / "gone").mkdir()
    monkeypatch.chdir(world.repo / "gone")
    (world.repo / "gone").rmdir()
    assert main(words) in (1, 125)
    assert "the working directory no longer exists\n  fix: cd to another one" in capsys.readouterr().err
