"""The text of a starter policy. Pure; `bawn init` looks around and writes it."""

from bawn.typed import NamedTuple


class Around(NamedTuple):
    """What `bawn init` found: the directory, and what in it matters to a policy."""

    directory: str
    agents: tuple[str, ...]  # presets whose program is on this machine
    env_files: tuple[str, ...]  # relative paths of .env files, a few of them
    git_dir: str  # where a worktree's .git file points to, "" for an ordinary repository


def starter_text(around: Around) -> str:
    """A policy that loads and runs as it is."""
    agent = around.agents[0] if around.agents else ""
    found = ", ".join(around.env_files)
    lines = [
        "# What agents may do in this directory. `bawn check` shows it as a tree; every field is",
        "# explained in docs/policy.md, and `bawn policy schema` lets an editor complete it.",
        "version = 1",
        "",
        "[profile.default]",
        f'agent = "{agent}"' if agent else '# agent = "claude"   # claude, codex or shell',
        'workdir = "."            # read-write at its own path; workdir_mode = "ro" for read-only',
        'egress = "none"          # no network at all',
        "",
        "# Names the agent must never read, at any depth" + (f" (here: {found})." if found else "."),
        'mask = [".env", ".env.*"]',
    ]
    if around.git_dir:
        lines += [
            "",
            f"# This is a git worktree: its repository lies in {around.git_dir}",
            "# Without it, git does not work in the box. It would be mounted read-write:",
            "# git_links = true",
        ]
    lines += [
        "",
        "# Values by name, from your environment or a file; never written here:",
        '# secrets = ["ANTHROPIC_API_KEY"]',
        "",
        "# More of the machine, each directory by name:",
        "# [[profile.default.mount]]",
        '# source = "~/notes"',
        '# mode = "ro"',
        '# write = ["inbox"]      # read-write on top of it',
        "",
    ]
    return "\n".join(lines)
