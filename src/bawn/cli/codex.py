"""`bawn codex [ARGS...]`: Codex in a box, the one-word way for every day."""

from bawn.cli.agent import run_agent


def main(words: list[str]) -> int:
    return run_agent("codex", words)
