"""Checkpoint F: the outbound guard against a corpus of replies and summaries (`outbound_corpus.json`).

The corpus is laid out below a directory of its own: a vault, what lies beside it, links and hard
links between them. Each case says which files leave and by which rules others are denied. A third
of the cases lets everything through, so that a guard that denies everything does not score.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator

from bawn.effects.outbound.guard import Guard
from bawn.outbound.decide import Mask, Ruleset
from bawn.outbound.locate import Root
from bawn.typed import Any, NamedTuple

CORPUS = f"{os.path.dirname(__file__)}/outbound_corpus.json"
MAX_SIZE = 1 << 20


class Case(NamedTuple):
    """One reply, what became of it, and what should have."""

    reply: Any
    leaves: Counter[str]  # files, relative to the top
    denied: Counter[str]  # rules
    wanted_leaves: Counter[str]
    wanted_denied: Counter[str]

    @property
    def right(self) -> bool:
        return self.leaves == self.wanted_leaves and self.denied == self.wanted_denied


class Score(NamedTuple):
    """Counts files. Precision: of what was denied, how much had to be. Recall: the reverse."""

    cases: int
    to_allow: int  # cases in which every file leaves
    wrong: tuple[Case, ...]
    leaked: tuple[str, ...]  # what left and should not have: none, or the guard is broken
    precision: float
    recall: float


def read() -> dict[str, Any]:
    with open(CORPUS, encoding="utf-8") as file:
        return dict(json.load(file))


def lay(corpus: dict[str, Any], top: str) -> None:
    """Makes the tree of the corpus below the empty directory `top`."""
    tree = corpus["tree"]
    for name in tree["files"]:
        _write(f"{top}/{name}", f"content of {name}")
    for name, target in tree["links"].items():
        os.symlink(target.replace("{top}", top), f"{top}/{name}")
    for name, target in tree["hard"].items():
        os.link(f"{top}/{target}", f"{top}/{name}")
    for name in tree["fifos"]:
        os.mkfifo(f"{top}/{name}")
    for name, size in tree["sparse"].items():
        _write(f"{top}/{name}", "")
        os.truncate(f"{top}/{name}", size)


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def guard(corpus: dict[str, Any], top: str) -> Guard:
    """As a policy with the corpus' roots, patterns and masks would make it. `top` is resolved."""
    roots = tuple(
        Root(text, path, os.path.realpath(path))
        for text in corpus["roots"]
        for path in [text.replace("{top}", top)]
    )
    masks = [Mask(f"{top}/vault", tuple(corpus["mask"]), "profile.default")]
    return Guard(Ruleset(roots, tuple(corpus["deny"]), masks), f"{top}/home", MAX_SIZE)


def run(corpus: dict[str, Any], top: str) -> Iterator[Case]:
    """Every case, judged; what left is known by the content that its descriptor reads."""
    with guard(corpus, top) as one:
        for case in corpus["cases"]:
            leaves: Counter[str] = Counter()
            denied: Counter[str] = Counter()
            reply = json.loads(json.dumps(case["reply"]).replace("{top}", top))
            for verdict, fd in one.files(reply):
                if fd < 0:
                    denied[verdict.rule] += 1
                    continue
                leaves[os.read(fd, 1000).decode().removeprefix("content of ")] += 1
                os.close(fd)
            wanted = Counter({rule: count for rule, count in case["denied"]})
            yield Case(reply, leaves, denied, Counter(case["leaves"]), wanted)


def score(corpus: dict[str, Any], top: str) -> Score:
    cases = list(run(corpus, top))
    rightly = sum((case.denied & case.wanted_denied).total() for case in cases)
    denied = sum(case.denied.total() for case in cases)
    wanted = sum(case.wanted_denied.total() for case in cases)
    leaked = [name for case in cases for name in case.leaves - case.wanted_leaves]
    return Score(
        len(cases),
        sum(not case.wanted_denied for case in cases),
        tuple(case for case in cases if not case.right),
        tuple(leaked),
        rightly / denied if denied else 0.0,
        rightly / wanted if wanted else 0.0,
    )
