"""The audit of a Hermes home by its findings, and hardening that goes back to the byte."""

import os
import re
import stat
from pathlib import Path

import pytest

from bawn.cli.main import main
from bawn.cli.team import read
from bawn.facts import dirs
from bawn.facts import hermes as facts
from bawn.teams import hermes
from bawn.teams.hermes_rules import RULES, findings
from tests.unit.hermes_homes import HARD, HOMES, Home, make

DOC = Path(__file__).parents[2] / "docs" / "team.md"


def judged(home: Path, environ: dict[str, str]) -> tuple[dict[str, hermes.Setting], list[str]]:
    """Settings, and rules of severity error or warning."""
    one = read(facts.observe(str(home), environ["HERMES_MANAGED_DIR"], hermes.WATCHED)[0])
    settings = hermes.effective(one, environ, environ["HOME"])
    found = findings(one, settings, hermes.mounts(one, settings), environ["HOME"])
    assert all(entry.rule in RULES and entry.severity == RULES[entry.rule].severity for entry in found)
    return settings, sorted({entry.rule for entry in found if entry.severity != "note"})


@pytest.mark.parametrize("name", HOMES)
def test_findings(tmp_path: Path, name: str) -> None:
    assert tuple(judged(*make(tmp_path, HOMES[name]))[1]) == HOMES[name].rules


def test_layers(tmp_path: Path) -> None:
    settings, _ = judged(*make(tmp_path, HOMES["managed_config_pins"]))
    assert settings["terminal.docker_network"].layer == hermes.MANAGED
    assert settings["terminal.backend"].layer == hermes.CONFIG
    assert settings["terminal.docker_image"].layer == hermes.DEFAULT


@pytest.mark.parametrize(
    ("line", "value"),
    [("A=b", "b"), ("export A = 'x # y'", "x # y"), ('A="q"  # c', "q"), ("A=b # c", "b"), ("A=b#c", "b#c"),
     ("A=${B}x", "2x"), ("A='${B}'", "${B}"), ("A=", ""), ("# A=1", None), ("no line", None)],
)  # fmt: skip
def test_dotenv(line: str, value: str | None) -> None:
    assert hermes.dotenv(line, {"B": "2"}).get("A") == value


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a default profile and two more; the verbs use a state of their own."""
    files = {
        "home/config.yaml": "terminal:\n  backend: local\n",
        "home/profiles/spec/config.yaml": "# mine\nterminal:\n    backend: 'local'   # tools\n# end\n",
        "home/profiles/qa/config.yaml": HARD,
    }
    home, environ = make(tmp_path, Home(files))
    os.chmod(home / "profiles/spec/config.yaml", 0o640)
    (home / "profiles/qa/config.yaml").rename(tmp_path / "dotfiles.yaml")
    (home / "profiles/qa/config.yaml").symlink_to(tmp_path / "dotfiles.yaml")
    for name in [name for name in os.environ if name.startswith(("TERMINAL_", "HERMES_"))]:
        monkeypatch.delenv(name)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(dirs, "observe", lambda: dirs.Dirs("/c", str(tmp_path / "state"), "/r"))
    return home


def team(home: Path, *words: str) -> int:
    return main(["team", words[0], "hermes", "--home", str(home), *words[1:]])


def picture(home: Path) -> dict[str, object]:
    return {
        str(path): (
            stat.filemode(path.lstat().st_mode),
            path.is_symlink() and os.readlink(path),
            path.read_bytes(),
        )
        for path in home.rglob("*")
        if path.is_file()
    }


def test_harden_and_back(cli: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = picture(cli)
    assert team(cli, "harden", "--plan") == 1
    assert picture(cli) == old
    assert team(cli, "harden", "--allow-dir", "/vault/out") == 0
    out = capsys.readouterr().out
    assert "default: left as it is" in out
    assert "spec: applied and verified" in out
    text = (cli / "profiles/spec/config.yaml").read_text()
    assert text.startswith("# mine\nterminal:\n    backend: docker   # tools\n    docker_network: false\n")
    assert (cli / "profiles/qa/config.yaml").is_symlink()
    assert (cli / "config.yaml").read_bytes() in [entry[2] for entry in old.values()]  # type: ignore[index]
    assert team(cli, "audit", "--profile", "spec", "--profile", "qa") == 0
    now = picture(cli)
    assert team(cli, "harden", "--allow-dir", "/vault/out") == 0
    assert picture(cli) == now  # twice is once
    assert team(cli, "rollback", "--profile", "spec") == 0
    assert team(cli, "rollback") == 0
    assert picture(cli) == old
    assert team(cli, "rollback") == 0


def test_write_roots_on_read_only_vaults(cli: Path, tmp_path: Path) -> None:
    """The write limit of a profile with a shell lies in its mounts."""
    vault = tmp_path / "vault"
    (vault / "out").mkdir(parents=True)
    config = cli / "profiles/spec/config.yaml"
    config.write_text(f"terminal:\n  docker_volumes:\n    - {vault}:/v  # all\n    - /src:/src:ro,z\n")
    old = picture(cli)
    words = ("--profile", "spec", "--write-root", f"{vault}/out")
    assert team(cli, "harden", *words) == 0
    assert (
        f'    - "{vault}:/v:ro"\n    - "/src:/src:ro,z"\n    - "{vault}/out:/v/out"\n' in config.read_text()
    )
    now = picture(cli)
    assert team(cli, "harden", *words) == 0
    assert picture(cli) == now
    assert team(cli, "rollback") == 0
    assert picture(cli) == old
    assert team(cli, "harden", "--profile", "spec", "--write-root", f"{vault}/none") == 2
    assert team(cli, "harden", "--profile", "spec", "--write-root", "/usr") == 1


def test_a_layer_that_wins_is_found_by_reading_again(cli: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An administrator pins the network: what was written would not hold, so it is taken back."""
    (cli.parent / "managed/config.yaml").write_text("terminal: {docker_network: true}\n")
    old = picture(cli)
    assert team(cli, "harden", "--profile", "spec") == 1
    said = capsys.readouterr().err
    assert "restored and verified: Hermes would use terminal.docker_network = True" in said
    assert "set by the managed config.yaml" in said
    assert picture(cli) == old


@pytest.mark.parametrize(
    ("text", "says"),
    [("terminal: [\n", "does not read it either"), ("a: &t {}\nterminal: *t\n", "is an alias")],
)
def test_what_cannot_be_edited(cli: Path, text: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    (cli / "config.yaml").write_text(text)
    assert team(cli, "harden", "--profile", "default") == 1
    assert says in capsys.readouterr().err
    assert (cli / "config.yaml").read_text() == text


def test_bad_words(cli: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert team(cli, "audit", "--profile", "none") == 2
    assert team(cli, "harden", "--allow-dir", "/a,/b") == 1
    assert team(cli / "missing", "audit") == 1
    assert "Hermes splits at" in capsys.readouterr().err


def test_secrets_are_not_shown(cli: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cli / "config.yaml").write_text(HARD.replace("gateway", "  docker_env: {TOKEN: hush}\ngateway"))
    team(cli, "audit")
    team(cli, "audit", "--json")
    out = capsys.readouterr().out
    assert "TOKEN" in out
    assert "hush" not in out


def test_the_document_has_the_rules() -> None:
    rows = re.findall(r"^\| (BWN\d+) \| (\w+) \| (.*?) \|", DOC.read_text(), re.MULTILINE)
    assert rows == [(name, rule.severity, rule.title) for name, rule in RULES.items()]
