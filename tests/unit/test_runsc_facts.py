"""runsc: found, remembered, judged; and how each system gets one."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bawn.effects import cache
from bawn.errors import HostError
from bawn.facts import host, programs, runsc
from bawn.facts.model import HostFact

HOST = host.observe()._replace(uid=0, userns=True)
# captured: Debian 12's own, Ubuntu 24.04's, backports, a release of gVisor
DEBIAN = "runsc version 0.0~20221219.0\nspec: 1.0.2-dev\n"
UBUNTU = "runsc version 0.0~20230807.0\nspec: 1.1.0-rc.1\n"
BACKPORTS = "runsc version 0.0~20240729.0\nspec: 1.0.2-dev\n"
RELEASE = "runsc version release-20250414.0\nspec: 1.1.0-rc.1\n"


class Said:
    """A finished tool."""

    def __init__(self, text: str, code: int = 0) -> None:
        self.text, self.code, self.complaint = text, code, text


class Tool:
    """A runner that counts."""

    def __init__(self, said: Said | HostError) -> None:
        self.said, self.asked = said, list[tuple[str, ...]]()

    def __call__(
        self, argv: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None,
        input: bytes | None = None, cap: int = 1 << 20,
    ) -> Said:  # fmt: skip
        self.asked.append(tuple(argv))
        if isinstance(self.said, HostError):
            raise self.said
        return self.said


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bin/runsc"
    path.parent.mkdir()
    path.write_text("")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent))
    monkeypatch.setattr(programs, "SYSTEM", ())
    monkeypatch.setattr(programs, "_of_root", lambda path: True)
    return path


def observed(tool: Tool, tmp_path: Path, machine: HostFact = HOST) -> tuple[str, str, str]:
    fact = runsc.observe(tool, f"{tmp_path}/runsc.json", machine)
    return fact.version, fact.problem, fact.fix


@pytest.mark.parametrize(
    ("text", "date"),
    [(DEBIAN, 20221219), (BACKPORTS, 20240729), (RELEASE, 20250414), ("runsc version x", 0), ("", 0)],
)
def test_versions(text: str, date: int) -> None:
    assert runsc.release_date(runsc.parse_version(text)) == date


def test_good(program: Path, tmp_path: Path) -> None:
    assert observed(Tool(Said(BACKPORTS)), tmp_path) == ("0.0~20240729.0", "", "")


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (Said(DEBIAN), "is too old (needs 20240729)"),
        (Said(UBUNTU), "is too old (needs 20240729)"),
        (Said("usage: runsc"), "did not tell its version"),
        (Said("", 1), "did not tell its version"),
        (HostError("runsc did not answer in 10 s"), "did not answer"),
    ],
)
def test_not_good(said: Said | HostError, problem: str, tmp_path: Path) -> None:
    _, got, fix = observed(Tool(said), tmp_path)
    assert problem in got
    assert fix


def test_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find", lambda name, path: "")
    _, problem, fix = observed(Tool(Said("")), tmp_path)
    assert problem == "runsc (gVisor) is not installed"
    assert fix


def test_relative_entries_of_path_are_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A work directory may hold a runsc of the agent's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runsc").write_text("")
    (tmp_path / "runsc").chmod(0o755)
    assert str(tmp_path) not in programs.find("runsc", ":.:")


@pytest.mark.usefixtures("program")
def test_an_ordinary_user_without_namespaces(tmp_path: Path) -> None:
    fact = runsc.observe(Tool(Said(BACKPORTS)), f"{tmp_path}/c", HOST._replace(uid=1000, userns=False))
    assert fact.problem
    assert fact.usable  # by dockerd


def test_remembered_for_this_very_file(program: Path, tmp_path: Path) -> None:
    store, tool = f"{tmp_path}/runsc.json", Tool(Said(BACKPORTS))
    key = runsc.key(str(program))
    Path(store).write_text(json.dumps({"key": key, "version": "0.0~20240729.0"}))
    assert observed(tool, tmp_path)[0] == "0.0~20240729.0"
    assert tool.asked == []
    program.write_text("another")
    observed(tool, tmp_path)
    assert len(tool.asked) == 1


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("text", ["", "[]", "{", '{"key": 1}', '{"version": "release-29990101.0"}'])
def test_a_broken_memory_is_asked_again(text: str, tmp_path: Path) -> None:
    (tmp_path / "runsc.json").write_text(text)
    tool = Tool(Said(BACKPORTS))
    assert observed(tool, tmp_path)[0] == "0.0~20240729.0"
    assert len(tool.asked) == 1


def test_where_the_memory_lies() -> None:
    assert cache.path("/run/bawn") == "/run/bawn/runsc.json"


@pytest.mark.parametrize(
    ("release", "says"),
    [
        ('ID=debian\nVERSION_ID="12"\n', "bookworm-backports"),
        ('ID=debian\nVERSION_ID="13"\n', "install -y runsc"),
        ("ID=debian\n", "install -y runsc"),
        ('ID=debian\nVERSION_ID="11"\n', "gvisor.dev"),
        ('ID=ubuntu\nVERSION_ID="24.04"\n', "$u resolute universe"),
        ('ID=ubuntu\nVERSION_ID="24.10"\n', "gvisor.dev"),
        ('ID=ubuntu\nVERSION_ID="22.04"\n', "gvisor.dev"),
        ('ID=ubuntu\nVERSION_ID="25.10"\n', "install -y runsc"),
        ("ID=fedora\nVERSION_ID=41\n", "gvisor.dev"),
        ("", "gvisor.dev"),
    ],
)
def test_how_a_system_gets_one(release: str, says: str) -> None:
    assert says in runsc.install_command(release)


def test_no_registry_is_named() -> None:
    """The address of backports is read from the machine's own sources when the line is pasted."""
    text = runsc.install_command('ID=debian\nVERSION_ID="12"\n')
    assert "indextargets" in text
    assert "//" not in text.replace("https://gvisor.dev/docs", "")


@pytest.mark.parametrize(
    ("version", "code", "mistakes"),
    [
        ("release-20250414.0", 0, False),
        ("0.0~20240729.0", 0, True),
        ("0.0~20240729.0", 1, False),
        ("0.0~20240729.0", 2, True),  # it could not be tried
    ],
)
def test_the_kernel_check(version: str, code: int, mistakes: bool) -> None:
    tool = Tool(Said("", code))
    assert runsc.mistakes_netns(tool, version) is mistakes
    if tool.asked:
        assert tool.asked[0][-3:] == ("test", "-e", runsc.RMEM)
        assert ("--user" in tool.asked[0]) is (os.getuid() != 0)


def test_the_kernel_check_without_its_tool() -> None:
    assert runsc.mistakes_netns(Tool(HostError("unshare is not installed")), "0.0~20240729.0")


def test_only_what_root_alone_can_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Owner, mode, a directory above, and where a link leads: each decides."""
    monkeypatch.setattr(programs, "SYSTEM", ())
    good = tmp_path / "good/bin/tool"
    good.parent.mkdir(parents=True)
    good.write_text("")
    good.chmod(0o755)
    trusted = programs.find("tool", str(good.parent)) != ""
    assert trusted == (os.geteuid() == 0)
    for change in (good, good.parent, good.parent.parent):
        change.chmod(0o777)
        assert programs.find("tool", str(good.parent)) == ""
        change.chmod(0o755)
    (tmp_path / "links").mkdir()
    (tmp_path / "links/tool").symlink_to(good)
    good.chmod(0o777)
    assert programs.find("tool", f"{tmp_path}/links") == ""
