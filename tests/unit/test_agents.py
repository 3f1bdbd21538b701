"""Finding an agent's program: one small tree of files for each installer, in a home of the test's own."""

import os
import stat
from pathlib import Path

import pytest

from bawn.facts import agents

ELF = b"\x7fELF" + b"\0" * 60
NODE = b"#!/usr/bin/env node\nconsole.log(1)\n"
SHELL = b'#!/bin/sh\nexec "$0.real" "$@"\n'
CLAUDE = "node_modules/@anthropic-ai/claude-code"
CODEX = "node_modules/@openai/codex"
NATIVE_CODEX = "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"


@pytest.fixture(autouse=True)
def _no_places_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "PLACES", tuple(p for p in agents.PLACES if p.startswith("~")))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def program(path: Path, data: bytes = ELF) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o755)
    return path


def link(path: Path, target: Path | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def found(name: str, home: Path, path: str = "") -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    fact = agents.find(name, str(home), path)
    return fact.executable, fact.argv, fact.mounts


def only(real: Path, mount: Path) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    return str(real), (str(real),), (str(mount),)


def test_npm_global_claude(home: Path) -> None:
    real = program(home / "npm/lib" / CLAUDE / "bin/claude.exe")
    link(home / "npm/bin/claude", f"../lib/{CLAUDE}/bin/claude.exe")
    assert found("claude", home, f"{home}/npm/bin") == only(real, home / "npm/lib" / CLAUDE)


def test_claude_by_npm_with_ignore_scripts(home: Path) -> None:
    """Then bin/claude.exe is a text that says so; the program lies in the package of the platform."""
    package = home / "npm/lib" / CLAUDE
    program(package / "bin/claude.exe", b"echo run the postinstall\n")
    musl = package / "node_modules/@anthropic-ai/claude-code-linux-x64-musl"
    glibc = package / "node_modules/@anthropic-ai/claude-code-linux-x64"
    program(musl / "claude")
    real = program(glibc / "claude")
    link(home / "npm/bin/claude", package / "bin/claude.exe")
    assert found("claude", home, f"{home}/npm/bin") == only(real, glibc)


@pytest.mark.parametrize("nested", [f"{CODEX}/{NATIVE_CODEX}", NATIVE_CODEX], ids=["nested", "hoisted"])
def test_codex_runs_without_node(home: Path, nested: str) -> None:
    lib = home / ".nvm/versions/node/v22.11.0/lib"
    program(lib / CODEX / "bin/codex.js", NODE)
    real = program(lib / nested)
    link(home / ".nvm/versions/node/v22.11.0/bin/codex", lib / CODEX / "bin/codex.js")
    assert found("codex", home) == only(real, real.parents[3])
    assert real.parents[3].name == "codex-linux-x64"


def test_codex_by_its_own_installer(home: Path) -> None:
    top = home / ".codex/packages/standalone/releases/0.145.0"
    real = program(top / "bin/codex")
    (top / "codex-package.json").write_text("{}")
    link(home / ".local/bin/codex", real)
    assert found("codex", home) == only(real, top)


def test_native_installer_mounts_one_file(home: Path) -> None:
    """Not ~/.local, which holds key rings and what else."""
    real = program(home / ".local/share/claude/versions/2.1.332")
    link(home / ".local/bin/claude", real)
    assert found("claude", home) == only(real, real)


def test_javascript_agent_gets_the_node_beside_it_and_no_more(home: Path) -> None:
    top = home / ".nvm/versions/node/v20.1.0"
    script = program(top / "lib" / CLAUDE / "cli.js", NODE)
    node = program(top / "bin/node")
    link(top / "bin/claude", script)
    fact = agents.find("claude", str(home), "")
    assert fact.argv == (str(node), str(script))
    assert fact.mounts == tuple(sorted([str(node), str(top / "lib" / CLAUDE)]))


def test_javascript_agent_without_node_is_not_found(home: Path) -> None:
    script = program(home / "npm/lib" / CLAUDE / "cli.js", NODE)
    link(home / "npm/bin/claude", script)
    assert found("claude", home, f"{home}/npm/bin")[0] == ""


def test_newest_node_of_nvm_counts(home: Path) -> None:
    for version in ("v9.9.9", "v20.11.0", "v20.9.0"):
        real = program(home / f".nvm/versions/node/{version}/lib" / CLAUDE / "bin/claude.exe")
        link(home / f".nvm/versions/node/{version}/bin/claude", real)
    assert "v20.11.0" in found("claude", home)[0]


@pytest.mark.parametrize("shim", ["volta-shim", "mise", "snap"])
def test_shim_is_not_the_agent(home: Path, shim: str) -> None:
    """A native program that chooses by its name what to run: it would run nothing in a box."""
    link(home / "shims/claude", program(home / "shims" / shim))
    real = program(
        home / ".volta/tools/image/packages/@anthropic-ai/claude-code/lib" / CLAUDE / "bin/claude.exe"
    )
    link(home / ".volta/tools/image/packages/@anthropic-ai/claude-code/bin/claude", real)
    assert found("claude", home, f"{home}/shims")[0] == str(real)


@pytest.mark.parametrize("tree", [".claude/local", ".local/share/pnpm/global/5", ".config/yarn/global"])
def test_script_in_front_of_a_package(home: Path, tree: str) -> None:
    program(home / "bin/claude", SHELL)
    real = program(home / tree / CLAUDE / "bin/claude.exe")
    assert found("claude", home, f"{home}/bin") == only(real, home / tree / CLAUDE)


def test_pnpm_package_is_a_link_into_its_store(home: Path) -> None:
    top = home / ".local/share/pnpm/global/5"
    real = program(top / ".pnpm/@anthropic-ai+claude-code@2.1.332" / CLAUDE / "bin/claude.exe")
    link(top / CLAUDE, real.parents[1])
    assert found("claude", home) == only(real, real.parents[1])


def test_path_comes_first(home: Path) -> None:
    mine = program(home / "mine/claude")
    program(home / ".local/bin/claude")
    assert found("claude", home, f"relative:{home}/mine")[0] == str(mine)


@pytest.mark.parametrize("kind", ["missing", "dangling", "directory", "not executable", "text"])
def test_what_is_no_program_is_passed_over(home: Path, kind: str) -> None:
    at = home / ".local/bin/claude"
    at.parent.mkdir(parents=True)
    if kind == "dangling":
        at.symlink_to("gone")
    elif kind == "directory":
        at.mkdir()
    elif kind == "not executable":
        at.write_bytes(ELF)
    elif kind == "text":
        program(at, b"hello")
    fact = agents.find("claude", str(home), "")
    assert fact.executable == ""
    assert str(at.parent) in fact.searched


def test_home_with_glob_characters(tmp_path: Path) -> None:
    home = tmp_path.resolve() / "a[b]*c"
    real = program(home / ".nvm/versions/node/v20.1.0/bin/claude")
    assert found("claude", home)[0] == str(real)


@pytest.mark.parametrize(
    ("npmrc", "prefix"),
    [
        ("prefix=~/.npm-packages\n", "/h/.npm-packages"),
        ("//host.test/:_authToken=prefix=/x\nprefix = ${HOME}/n\n", "/h/n"),
        ('prefix="/opt/n"\n', "/opt/n"),
        ("prefix=relative\n", ""),
        ("; prefix=/commented\nsave-prefix=/no\n", ""),
        ("prefix=/one\nprefix=/two\n", "/two"),
    ],
)
def test_npm_prefix(npmrc: str, prefix: str) -> None:
    assert agents.npm_prefix(npmrc, "/h") == prefix


def test_prefix_of_npmrc_is_searched(home: Path) -> None:
    (home / ".npmrc").write_text("prefix=~/packages\n")
    real = program(home / "packages/lib" / CLAUDE / "bin/claude.exe")
    link(home / "packages/bin/claude", real)
    assert found("claude", home)[0] == str(real)


@pytest.mark.parametrize("at", ["program", "package"])
def test_what_anybody_may_write_is_told(home: Path, at: str) -> None:
    real = program(home / "npm/lib" / CLAUDE / "bin/claude.exe")
    link(home / "npm/bin/claude", real)
    assert agents.find("claude", str(home), f"{home}/npm/bin").open_to_all == ""
    loose = real if at == "program" else home / "npm/lib" / CLAUDE
    loose.chmod(loose.stat().st_mode | stat.S_IWOTH)
    assert agents.find("claude", str(home), f"{home}/npm/bin").open_to_all == str(loose)


def test_login_shell_of_nobody_is_sh() -> None:
    assert agents.login_shell(2_147_483_001) == "/bin/sh"
    assert agents.login_shell(65534) == "/bin/sh"  # nologin


def test_login_shell_is_a_shell_of_this_system() -> None:
    shell = agents.login_shell(os.getuid())
    assert os.path.basename(shell) in agents.SHELLS
    assert os.path.realpath(shell).startswith("/usr/")
