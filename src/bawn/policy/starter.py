"""The text of a starter policy. Pure; `bawn init` looks around and writes it."""

from collections.abc import Iterable

from bawn.policy.kinds import quoted
from bawn.policy.model import DEFAULT_MASK
from bawn.policy.patterns import Matcher
from bawn.typed import NamedTuple

# preset -> the variable that holds its key
AGENTS = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY"}


class Around(NamedTuple):
    """What `bawn init` found: what in a directory matters to its policy."""

    agents: tuple[str, ...] = ()  # presets whose program is on this machine
    env_files: tuple[str, ...] = ()  # relative paths of files that hold an environment, a few of them
    git_dir: str = ""  # where a worktree's .git file points to, "" for an ordinary repository


def starter_text(around: Around) -> str:
    """A policy that loads and runs as it is."""
    agents = [agent for agent in around.agents if agent in AGENTS]
    keys = [AGENTS[agent] for agent in agents] or ["ANTHROPIC_API_KEY"]
    lines = [
        "# What agents may do in this directory. `bawn check` shows it as a tree; `bawn policy fields`",
        "# explains every field, and `bawn policy schema` lets an editor complete them.",
        "version = 1",
        "",
        "[profile.default]",
        _row(
            f'agent        = "{agents[0]}"' if agents else '# agent      = "claude"',
            "what runs when you name no command: claude, codex or shell",
        ),
        _row('workdir      = "."', "this directory, at its own path"),
        _row('workdir_mode = "rw"', 'or "ro"; then write = ["src"] names what may be written'),
        _row('egress       = "none"', "no network at all"),
        "",
        *_mask(around.env_files),
        *_worktree(around.git_dir),
        "",
        "# Values by name, from your environment or a file; never written here:",
        f"# secrets = {_list(keys)}",
        "",
        "# More of the machine, each directory by name:",
        "# [[profile.default.mount]]",
        '# source = "~/notes"',
        '# mode   = "ro"',
        '# write  = ["inbox"]    # read-write on top of it',
    ]
    return "\n".join(lines) + "\n"


def _row(text: str, comment: str) -> str:
    return f"{text:<28}# {comment}"


def _mask(env_files: tuple[str, ...]) -> list[str]:
    """The default, and what else the files found here need to be covered."""
    usual = Matcher(DEFAULT_MASK)
    names = [path.rpartition("/")[2] for path in env_files]
    more = ["*.env" if name.endswith(".env") else name for name in names if not usual.match(name, name)]
    found = ", ".join(path for path in env_files if path.isprintable())
    here = f"# Here: {found}." if found else ""
    return [
        "# Names the agent never reads, at any depth, also when they appear during a run.",
        *([here] if here else []),
        f"mask = {_list(dict.fromkeys([*DEFAULT_MASK, *more]))}",
    ]


def _worktree(git_dir: str) -> list[str]:
    if not git_dir:
        return []
    return [
        "",
        "# This is a git worktree or submodule: its repository lies elsewhere, at",
        f"#   {git_dir if git_dir.isprintable() else quoted(git_dir)}",
        "# and git does not work in the box without it. To mount that too, read-write:",
        "# git_links = true",
    ]


def _list(items: Iterable[str]) -> str:
    return "[" + ", ".join(map(quoted, items)) + "]"
