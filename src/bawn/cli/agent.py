"""The one-word way: `bawn claude`, `bawn codex`. Every word after it is the agent's own.

The policy found decides (its profile with that agent, else its default one with the agent put in);
without one, the defaults with the current repository as the one mount.
"""

from bawn.cli.prepare import Wanted
from bawn.cli.run import run


def run_agent(agent: str, words: list[str]) -> int:
    """The exit code, as for `bawn run`."""
    return run({}, Wanted(agent=agent, words=tuple(words)), ())
