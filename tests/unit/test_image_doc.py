"""docs/image.md shows the table of the contract; run as a program, this writes it there.

PYTHONPATH=src python -m tests.unit.test_image_doc
"""

import re
from pathlib import Path

from bawn.egress.rules import RULES as OUTCOMES
from bawn.plan.image_rules import IMAGE_RULES
from bawn.plan.rules import RULES

TOP = Path(__file__).parents[2]
DOC = TOP / "docs" / "image.md"


def filled(text: str) -> str:
    rows = [
        f"| {name} | {row.severity} | {row.title} | {row.why} | {'' if row.fix == 'none' else row.fix} |"
        for name, row in IMAGE_RULES.items()
    ]
    table = "\n".join(["| rule | severity | what | why | fix |", "|---|---|---|---|---|", *rows])
    made, count = re.subn(
        r"(<!-- rules -->\n).*?(<!-- /rules -->)", lambda m: f"{m[1]}{table}\n{m[2]}", text, flags=re.DOTALL
    )
    assert count == 1
    return made


def test_the_document_shows_the_table() -> None:
    assert DOC.read_text() == filled(DOC.read_text()), "run python -m tests.unit.test_image_doc"


def test_an_id_means_one_thing() -> None:
    assert not IMAGE_RULES.keys() & (RULES.keys() | OUTCOMES.keys())


def test_every_rule_is_met_in_a_test() -> None:
    tests = "".join(path.read_text() for path in (TOP / "tests").rglob("test_image_*.py"))
    assert [name for name in IMAGE_RULES if f'"{name}' not in tests] == []


if __name__ == "__main__":
    DOC.write_text(filled(DOC.read_text()))
