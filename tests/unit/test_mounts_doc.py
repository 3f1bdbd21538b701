"""`docs/mounts.md` shows the tables that the code holds; run as a program, this writes them there.

PYTHONPATH=src python -m tests.unit.test_mounts_doc
"""

import re
from pathlib import Path

from bawn.plan.rules import RULES
from bawn.policy.host_exec import GIT_FILES, HOST_EXEC
from bawn.policy.refused import REFUSED, REFUSED_ENV

TOP = Path(__file__).parents[2]
DOC = TOP / "docs" / "mounts.md"
THEMES = {
    "1": "Refused paths",
    "2": "Sources and targets",
    "3": "Masks",
    "4": "Files the host runs or obeys",
    "5": "Ownership",
    "6": "Git directories",
    "7": "The run itself",
}


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def rules_table() -> str:
    lines = []
    for digit, theme in THEMES.items():
        lines += [f"### {theme}", "", "| rule | severity | what | why | fix |", "|---|---|---|---|---|"]
        for name, row in RULES.items():
            if name[3] == digit:
                fix = "" if row.fix == "none" else cell(row.fix)
                lines.append(f"| {name} | {row.severity} | {cell(row.title)} | {cell(row.why)} | {fix} |")
        lines.append("")
    return "\n".join(lines)


def refused_table() -> str:
    lines = ["| path | rule | why | inside too | an override lifts it |", "|---|---|---|---|---|"]
    by_kind: dict[tuple[str, str, str, bool], list[str]] = {}
    for row in REFUSED:
        by_kind.setdefault((row.rule, row.why, row.scope, row.lift), []).append(f"`{row.path}`")
    for (rule, why, scope, lift), paths in sorted(by_kind.items()):
        inside, lifts = "yes" if scope == "tree" else "no", "yes" if lift else "never"
        lines.append(f"| {' '.join(paths)} | {rule} | {cell(why)} | {inside} | {lifts} |")
    names = " ".join(f"`${name}`" for name, *_ in REFUSED_ENV)
    return "\n".join([*lines, "", f"and what these variables name in bawn's own environment: {names}.", ""])


def host_exec_table() -> str:
    by_why: dict[str, list[str]] = {}
    for pattern, why in HOST_EXEC.items():
        by_why.setdefault(why, []).append(f"`{pattern}`")
    for name, why in GIT_FILES.items():
        by_why.setdefault(why, []).append(f"`{name}` of a git directory")
    lines = ["| files | why |", "|---|---|"]
    return "\n".join([*lines, *(f"| {' '.join(names)} | {why} |" for why, names in by_why.items()), ""])


TABLES = {"rules": rules_table, "refused": refused_table, "host-exec": host_exec_table}


def filled(text: str) -> str:
    for name, table in TABLES.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        pattern = re.escape(begin) + ".*?" + re.escape(end)
        assert re.search(pattern, text, re.DOTALL), f"docs/mounts.md has no place for {name}"
        made = f"{begin}\n{table()}\n{end}"
        text = re.sub(pattern, lambda _, made=made: made, text, flags=re.DOTALL)  # type: ignore[misc]
    return text


def test_the_document_shows_the_tables() -> None:
    assert DOC.read_text() == filled(DOC.read_text()), "run python -m tests.unit.test_mounts_doc"


def test_every_rule_has_its_theme() -> None:
    assert {name[3] for name in RULES} <= set(THEMES)


def test_every_mount_rule_is_met_in_a_test() -> None:
    tests = "".join(path.read_text() for path in (TOP / "tests").rglob("test_*.py"))
    missing = [name for name in RULES if name[3] < "7" and f'"{name}"' not in tests]
    assert missing == []


if __name__ == "__main__":
    DOC.write_text(filled(DOC.read_text()))
