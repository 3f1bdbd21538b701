"""What `bawn run --learn` proposes: what was used and refused, and never what no line may allow."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bawn.egress.decide import compiled, decide
from bawn.egress.learn import as_diff, propose
from bawn.evidence import passages
from bawn.evidence.events import Passage
from bawn.policy.hosts import HostPattern, problem

ALLOW = ("@github", "api.test", "*.wild.test:8443", "unused.test")


def passage(name: str, port: int = 443, by: str = "") -> Passage:
    """As the proxy writes it."""
    lines = [(HostPattern.parse(line), line) for line in ("api.test", "*.wild.test:8443", "unused.test")]
    found = decide(compiled(lines), name, port)
    return Passage(
        "r1", "2026-12-04T00:00:00.000Z", "out", "connect", "allowed" if found.allowed or by else "denied",
        found.rule, found.name, found.port, "", found.reason, by or found.by, "" if by else found.fix,
        10, 20, 30, "closed",
    )  # fmt: skip


def test_the_narrowest_list() -> None:
    seen = [
        passage("api.test"), passage("api.test"), passage("a.wild.test", 8443), passage("new.test"),
        passage("new.test", 8080), passage("api.github.com", by="@github"),
    ]  # fmt: skip
    found = propose(ALLOW, seen)
    assert [line for line, _ in found.lines] == ["@github", "api.test", "a.wild.test:8443", "new.test",
                                                 "new.test:8080"]  # fmt: skip
    assert dict(found.gone).keys() == {"*.wild.test:8443", "unused.test"}
    assert [row[0] for row in as_diff(ALLOW, found)] == [" ", " ", "-", "-", "+", "+", "+"]


@pytest.mark.parametrize(
    "name",
    ["169.254.169.254", "metadata.google.internal", "localhost", "printer.local", "10.0.0.1", "0x7f.1",
     "[::1]", "2130706433", "8.8.8.8", "a b"],
)  # fmt: skip
def test_what_is_never_allowed_is_never_proposed(name: str) -> None:
    found = propose(("api.test",), [passage("api.test"), passage(name, 80)])
    assert [line for line, _ in found.lines] == ["api.test"]
    assert len(found.never) == 1 and as_diff(("api.test",), found) == ()


@given(st.lists(st.tuples(st.text(max_size=30), st.integers(0, 70000)), max_size=8))
def test_every_proposed_line_loads_and_helps(asked: list[tuple[str, int]]) -> None:
    found = propose((), [passage(*one) for one in asked])
    for line, _ in found.lines:
        assert problem(line) == ""
    rules = compiled([(HostPattern.parse(line), line) for line, _ in found.lines])
    for name, port in asked:
        assert decide(rules, name, port).allowed or not passage(name, port).fix


def test_the_log_is_read_whole_lines_only(tmp_path: Path) -> None:
    state = str(tmp_path)
    assert passages.read(state) == passages.Lines((), 0)
    line = json.dumps(passage("api.test")._asdict()).encode() + b"\n"
    log = Path(passages.log_of(state))
    wrong = json.dumps({**passage("x.test")._asdict(), "port": "443"}).encode()
    log.write_bytes(line + b"{}\nnot json\n" + wrong + b"\n" + line[:20])
    found = passages.read(state)
    assert (len(found.found), found.unreadable) == (1, 3)
    with log.open("ab") as file:
        file.write(line[20:])
    assert passages.read(state, found.at).found == (passage("api.test"),)
    log.write_bytes(line)
    assert len(passages.read(state, found.at).found) == 1, "a log that begins anew"
    assert list(passages.of_run(state, "r2")) == []
