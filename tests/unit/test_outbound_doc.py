"""docs/outbound.md shows the table of outcomes; run as a program, this writes it there.

PYTHONPATH=src python -m tests.unit.test_outbound_doc
"""

import re
from pathlib import Path

from bawn.egress.rules import RULES as EGRESS
from bawn.outbound.rules import NOTHING_THERE, RULES
from bawn.plan.rules import RULES as FINDINGS
from bawn.policy.parse import parse_policy

TOP = Path(__file__).parents[2]
DOC = TOP / "docs" / "outbound.md"


def filled(text: str) -> str:
    rows = [f"| {name} | {row.what} | {row.fix} |" for name, row in RULES.items()]
    table = "\n".join(["| rule | what | what to do |", "|---|---|---|", *rows])
    made, count = re.subn(
        r"(<!-- rules -->\n).*?(<!-- /rules -->)",
        lambda m: f"{m[1]}\n{table}\n\n{m[2]}",
        text,
        flags=re.DOTALL,
    )
    assert count == 1
    return made


def test_the_document_shows_the_table() -> None:
    assert DOC.read_text() == filled(DOC.read_text()), "run python -m tests.unit.test_outbound_doc"


def test_the_policies_of_the_document_load() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", DOC.read_text(), re.DOTALL)
    assert blocks
    for text in blocks:
        parse_policy(f"version = 1\n{text}", DOC.name)


def test_an_id_means_one_thing() -> None:
    assert not RULES.keys() & (FINDINGS.keys() | EGRESS.keys())
    assert RULES.keys() > NOTHING_THERE


def test_every_outcome_is_met_in_a_test() -> None:
    tests = "".join(path.read_text() for path in (TOP / "tests").rglob("test_outbound_*.py"))
    assert [name for name in RULES if f'"{name}"' not in tests] == []


if __name__ == "__main__":
    DOC.write_text(filled(DOC.read_text()))
