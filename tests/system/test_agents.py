"""`bawn claude` every day: at a terminal it asks nothing, and from a home only its package is seen."""

import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.system.conftest import Person, need, policy
from tests.system.test_run import Terminal

pytestmark = pytest.mark.system

# Claude Code draws words apart by moving the cursor.
_CONTROL = re.compile(r"\x1b\[[0-9;?>]*[A-Za-z]|\x1b\][^\x07]*\x07|\s")
KEY = "sk-ant-api03-" + "x" * 40 + "abcdefghijklmnopqrst"


def screen(term: Terminal, word: str, seconds: float = 60) -> str:
    """What was drawn until `word` was, without blanks."""
    text, deadline = "", time.monotonic() + seconds
    os.set_blocking(term.fd, False)
    while word not in _CONTROL.sub("", text):
        assert time.monotonic() < deadline, f"never saw {word!r} in {_CONTROL.sub('', text)!r}"
        try:
            text += os.read(term.fd, 65536).decode(errors="replace")
        except BlockingIOError:
            time.sleep(0.05)
    return _CONTROL.sub("", text)


@pytest.mark.parametrize("key", ["", KEY], ids=["no key", "key"])
def test_claude_starts_without_a_question(
    person: Person, work: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("claude", root=False)
    policy(work, '[profile.default]\nagent = "claude"\nsecrets = ["ANTHROPIC_API_KEY"]\n', person)
    more = {"ANTHROPIC_API_KEY": key} if key else {}
    environment = {**person.environment(TERM="xterm-256color"), **more}
    monkeypatch.setattr(person, "environment", lambda **named: environment)
    term = Terminal(person, work, "claude", size=(40, 120))
    try:
        seen = screen(term, "bypasspermissionson")
    finally:
        os.kill(term.pid, signal.SIGTERM)
        term.end()
    for question in ("Doyouwanttousethis", "Doyoutrust", "Yes,Iaccept", "Choosethetextstyle"):
        assert question not in seen


def test_agent_in_a_private_home(person: Person, work: Path) -> None:
    """As nvm has it. The home is closed to others, and but for the package it stays so in the box."""
    top = person.home / ".nvm/versions/node/v22.0.0"
    package = person.make(top / "lib/node_modules/@anthropic-ai/claude-code/bin").parent
    program = package / "bin/claude.exe"
    shutil.copy(os.path.realpath("/bin/ls"), program)
    secret = person.make(person.home / ".nvm/secret", "S")
    person.make(top / "bin")
    (top / "bin/claude").symlink_to(program)
    os.chmod(person.home, 0o700)
    try:
        words = ("claude", "--permission-mode", "-a")  # words that ls does not know, so it ends with 2
        done = person.bawn(*words, cwd=work, PATH=f"{top}/bin:/usr/local/bin:/usr/bin:/bin")
        assert "unrecognized option '--permission-mode'" in done.stderr
        policy(work, '[profile.default]\nagent = "claude"\n', person)
        script = f"ls -A {person.home} {person.home}/.nvm; cat {secret}; echo x >{program}"
        done = person.bawn("run", "-q", "--", "sh", "-c", script, cwd=work, PATH=f"{top}/bin:/usr/bin:/bin")
        assert "S" not in done.stdout.split()
        assert "versions" in done.stdout
        assert "secret" not in done.stdout
        assert program.read_bytes() == Path("/bin/ls").read_bytes()
    finally:
        shutil.rmtree(person.home / ".nvm")
        os.chmod(person.home, 0o755)
