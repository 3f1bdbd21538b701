"""`bawn claude` at a terminal draws its screen and asks nothing: the box is the answer."""

import os
import re
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
