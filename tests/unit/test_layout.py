"""The layout: imports run one way, one file starts programs, only cli prints, the hot path is light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "bawn"
FILES = sorted(SRC.rglob("*.py"))
EVERYWHERE = {"errors", "digest", "typed", "unix_http", "__init__"}
# room -> the rooms it may import
ROOMS = {
    "policy": set(),
    "facts": {"policy"},
    "evidence": {"policy"},
    "plan": {"policy", "facts", "evidence"},
    "box": set(),
    "image": set(),
    "teams": {"policy", "facts", "plan"},
    "effects": {"policy", "facts", "plan", "evidence", "box"},
    "egress": {"policy", "plan", "evidence"},  # of evidence: events, the record of a decision
    "proof": {"policy", "facts", "plan", "evidence", "effects"},
    "cli": {"policy", "facts", "plan", "evidence", "box", "teams", "effects", "egress", "image"},
}
# facts that a pure plan may see: values and pure parsers, never the observing
PURE_FACTS = {"bawn.facts.model", "bawn.facts.docker", "bawn.facts.runsc"}
LIMIT = 400


def room(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_file(path: Path) -> None:
    here = room(path)
    text = path.read_text()
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "bawn" and len(parts) > 1 and here in ROOMS:
            allowed = ROOMS[here] | EVERYWHERE | {here, "box"}
            assert parts[1] in allowed or parts[1].startswith("_"), f"{here} imports {name}"
            assert here != "egress" or parts[1] != "evidence" or parts[2] == "events", name
        if parts[0] in ("subprocess", "pty"):
            assert path == SRC / "effects/process.py", f"{path} starts programs"
    tree = ast.parse(text)
    assert ast.get_docstring(tree), f"{path} does not say what it is for"
    assert len(text.splitlines()) <= LIMIT
    if here != "cli":
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("print", "exit", "input"), f"{path} speaks to a person"


@pytest.mark.parametrize("path", [f for f in FILES if room(f) in ("plan", "policy", "egress")], ids=str)
def test_planning_is_pure(path: Path) -> None:
    """No I/O, no clock, no environment: nothing is imported that could do it."""
    banned = {"os", "time", "socket", "random", "shutil", "tempfile", "io.open"}
    names = {name.split(".")[0] for name in imports(path)} - {"io"}
    assert not names & banned
    for name in imports(path):
        if name.startswith("bawn.facts") and room(path) == "plan":
            assert any(name.startswith(pure) for pure in PURE_FACTS), name


HEAVY = {
    "argparse", "asyncio", "dataclasses", "difflib", "hashlib", "inspect", "ipaddress", "logging",
    "pathlib", "shutil", "subprocess", "tempfile", "threading", "tomllib", "typing",
}  # fmt: skip


def test_the_way_of_a_run_is_light() -> None:
    """Counted in a fresh interpreter: standard library only, nothing heavy, and not many."""
    script = (
        "import sys; import bawn.cli.main, bawn.cli.run, bawn.effects.box_run, bawn.effects.gvisor; "
        "print('\\n'.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-IS", "-c", f"import sys; sys.path.insert(0, {str(SRC.parent)!r}); {script}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = set(done.stdout.split())
    assert not loaded & HEAVY
    foreign = {m.split(".")[0] for m in loaded} - set(sys.stdlib_module_names) - {"bawn", "__main__"}
    assert foreign == set()
    assert len(loaded) < 150


def test_no_verb_without_its_file() -> None:
    from bawn.cli.main import VERBS

    for verb in VERBS:
        assert (SRC / "cli" / f"{verb}.py").exists()
