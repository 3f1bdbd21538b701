"""`bawn init`: writes a starter policy for a directory and trusts it."""

import argparse
import os

from bawn.cli.text import escape
from bawn.errors import UsageError
from bawn.facts import dirs, gather, policy_file
from bawn.policy.parse import parse_policy
from bawn.policy.starter import AGENTS, Around, starter_text

HELP = "Write a commented starter policy, ready to run as it is, and trust it."
_LOOK = 2000  # directory entries: init looks around, it does not search
_SKIP = frozenset((".git", "node_modules", ".venv", "venv", "__pycache__", "target", "dist"))
_NAMED = 3  # files named in the policy's comment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dir", default="", help="where (default: the repository, else here)")
    parser.add_argument("--force", action="store_true", help="replace the policy, keeping a copy")


def run(args: argparse.Namespace) -> int:
    """0 written; 2 there is one already, or this is no directory for one."""
    from bawn.effects.policy_file import write_policy
    from bawn.effects.trust import trust

    directory = os.path.realpath(args.dir or gather.repository_root(dirs.working()))
    _suitable(directory)
    path = os.path.join(directory, policy_file.NAME)
    text = starter_text(look_around(directory))
    parse_policy(text, path)
    kept = write_policy(path, text.encode(), args.force)
    trust(policy_file.read(path), dirs.observe().state)
    print(escape(f"wrote {path} and trusted it" + (f"; the old one is {kept}" if kept else "")))
    print("next: bawn check        what an agent can read, write and never see")
    print("      bawn run -- sh    a shell in the box")
    return 0


def _suitable(directory: str) -> None:
    """A policy's own directory is its work directory, so it may not be one that no box is given."""
    if not os.path.isdir(directory):
        raise UsageError(f"{directory} is not a directory", "bawn init --dir DIRECTORY")
    if directory in ("/", os.path.realpath(os.path.expanduser("~"))):
        raise UsageError(
            f"{directory} holds more than any agent may have", "bawn init --dir PROJECT, one directory of it"
        )


def look_around(directory: str) -> Around:
    """Looks, and never runs anything: git least of all (its configuration runs programs)."""
    from bawn.facts import agents

    return Around(
        agents=tuple(name for name in AGENTS if agents.on_path(name)),
        env_files=_env_files(directory),
        git_dir=gather.worktree_of(directory),
    )


def _env_files(directory: str) -> tuple[str, ...]:
    found: list[str] = []
    seen = 0
    for base, folders, files in os.walk(directory):
        folders[:] = sorted(set(folders) - _SKIP)
        seen += len(folders) + len(files)
        found += [os.path.relpath(os.path.join(base, name), directory) for name in files if _is_env(name)]
        if seen > _LOOK or len(found) >= _NAMED:
            break
    return tuple(sorted(found)[:_NAMED])


def _is_env(name: str) -> bool:
    return name == ".envrc" or name.startswith(".env.") or name.endswith(".env")
