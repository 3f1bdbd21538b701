"""Checkpoint F's corpus: at least 150 replies, a third to be allowed; nothing else ever leaves."""

import os
from pathlib import Path

import pytest

from bawn.effects.outbound.guard import Guard
from bawn.proof import outbound
from bawn.typed import Any


def test_the_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus, top = outbound.read(), os.path.realpath(tmp_path)
    outbound.lay(corpus, top)
    score = outbound.score(corpus, top)
    with capsys.disabled():
        print(
            f"\n  outbound corpus: {score.cases} replies, {score.to_allow} to be allowed; "
            f"precision {score.precision:.3f}, recall {score.recall:.3f}, leaked {len(score.leaked)}"
        )
    for case in score.wrong:
        print(case.reply, case.leaves, case.denied, "wanted", case.wanted_leaves, case.wanted_denied)
    assert score.leaked == ()
    assert score.wrong == ()
    assert (score.precision, score.recall) == (1.0, 1.0)
    assert score.cases >= 150 and score.to_allow * 3 >= score.cases


@pytest.mark.parametrize("everything", ["denied", "allowed"])
def test_a_guard_that_does_not_look_does_not_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, everything: str
) -> None:
    corpus, top = outbound.read(), os.path.realpath(tmp_path)
    outbound.lay(corpus, top)
    real = Guard.files

    def files(self: Guard, data: Any) -> Any:
        for verdict, fd in real(self, data):
            if everything == "denied":
                if fd >= 0:
                    os.close(fd)
                yield verdict._replace(allowed=False, rule="BWN901"), -1
            else:
                yield verdict, fd if fd >= 0 else os.open(f"{top}/outside/secret.md", os.O_RDONLY)

    monkeypatch.setattr(Guard, "files", files)
    score = outbound.score(corpus, top)
    if everything == "denied":
        assert score.precision < 0.9
    else:
        assert score.leaked and score.recall == 0
