"""The README's help text is the program's, and docs/policy.md is the table of fields.

python -m tests.unit.test_readme      writes both anew (the transcript too, with an installed bawn)
"""

import re
import subprocess
import tempfile
from pathlib import Path

from bawn.cli.main import usage
from bawn.policy.parse import parse_policy
from bawn.policy.reference import reference

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
POLICY = ROOT / "docs" / "policy.md"
TRANSCRIPT = (
    "bawn run -- sh -c 'echo \"$(uname -sr), $(id -un)\"; cat .env; ls ~/.ssh; echo hi > note'",
    "bawn check",
    "bawn claude --version",
    "bawn run --timeout 2s -- sleep 60",
    "bawn runs -n 3",
)


def between(text: str, name: str) -> str:
    match = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", text, re.DOTALL)
    assert match, f"no place for {name}"
    return match[1]


def put(text: str, name: str, content: str) -> str:
    return (
        text.replace(between(text, name), content, 1)
        if between(text, name)
        else text.replace(f"<!-- {name} -->\n", f"<!-- {name} -->\n{content}", 1)
    )


def help_block() -> str:
    return f"```\n{usage()}\n```\n"


def test_help() -> None:
    assert between(README.read_text(), "help") == help_block()


def test_transcript_is_of_these_commands() -> None:
    shown = between(README.read_text(), "transcript")
    assert [line[2:] for line in shown.splitlines() if line.startswith("$ ")] == list(TRANSCRIPT)


def test_policy_fields() -> None:
    assert between(POLICY.read_text(), "fields") == reference()


def test_the_policies_of_the_docs_load() -> None:
    for page in (README, POLICY):
        for text in re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL):
            parse_policy(text, page.name)


def transcript() -> str:
    """Run for real, in a directory of its own, by the installed bawn."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        work = Path(directory, "shop")
        work.mkdir()
        (work / ".env").write_text("SECRET=1\n")
        (work / "app.py").write_text("print('hello')\n")
        lines = []
        for command in TRANSCRIPT:
            done = subprocess.run(
                ["sh", "-c", command], cwd=work, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            lines += [f"$ {command}", done.stdout.replace(directory, "~/src").rstrip()]
    return "```\n" + "\n".join(lines) + "\n```\n"


if __name__ == "__main__":
    text = put(README.read_text(), "help", help_block())
    README.write_text(put(text, "transcript", transcript()))
    POLICY.write_text(put(POLICY.read_text(), "fields", reference()))
