"""`bawn init`: writes a starter policy for a directory and trusts it."""

import argparse
import os

from bawn.errors import HostError, UsageError
from bawn.facts import dirs, gather, policy_file
from bawn.facts.policy_file import Found
from bawn.policy.parse import parse_policy
from bawn.policy.starter import Around, starter_text

HELP = "Write a commented starter policy, ready to run as it is, and trust it."
_LOOK = 2000  # directory entries: init looks around, it does not search


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dir", default="", help="where (default: the repository, else here)")
    parser.add_argument("--force", action="store_true", help="replace one, keeping a copy")


def run(args: argparse.Namespace) -> int:
    """0 written; 2 there is one already."""
    from bawn.effects import atomic, trust

    directory = os.path.realpath(args.dir or gather.repository_root(os.getcwd()))
    path = os.path.join(directory, policy_file.NAME)
    text = starter_text(_look_around(directory))
    parse_policy(text, path)
    kept = ""
    if os.path.lexists(path):
        if not args.force:
            raise UsageError(f"{path} is there already", "bawn init --force replaces it")
        kept = f"{path}.{os.stat(path).st_mtime_ns}.bak"
        os.link(path, kept)
    try:
        atomic.write_atomic(path, text.encode(), 0o644)
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}") from None
    trust.trust(Found(path, text.encode()), dirs.observe().state)
    print(f"wrote {path} and trusted it" + (f"; the old one is {kept}" if kept else ""))
    print("next: bawn check        what an agent can read, write and never see")
    print("      bawn run -- sh    a shell in the box")
    return 0


def _look_around(directory: str) -> Around:
    from bawn.facts import agents

    found = [name for name in ("claude", "codex") if agents.on_path(name)]
    return Around(directory, tuple(found), _env_files(directory), gather.worktree_of(directory))


def _env_files(directory: str) -> tuple[str, ...]:
    names: list[str] = []
    seen = 0
    for base, folders, files in os.walk(directory):
        folders[:] = [f for f in folders if f not in (".git", "node_modules", ".venv")]
        seen += len(folders) + len(files)
        names += [os.path.relpath(os.path.join(base, f), directory)
                  for f in files if f == ".env" or f.startswith(".env.")]  # fmt: skip
        if seen > _LOOK or len(names) >= 3:
            break
    return tuple(name for name in sorted(names)[:3] if name.isprintable())
