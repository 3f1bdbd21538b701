"""Files that the host runs, or obeys, without anybody asking for it: the table. Pure.

An agent that can write one of these has a way out of its box: the next `cd`, `git status`, editor
window or agent on the host runs its text. They are read-only below a writable mount, unless
`host_exec` in the profile allows them; new ones are reported after the run. What a person runs
on purpose (a Makefile, package.json, the program itself) is not here: reading it is their review.

Git's own files are found by structure, not by these patterns (`facts.tree`): a directory named
`.git`, or one that holds HEAD and objects (a bare repository, a submodule's `.git/modules/x`), or
HEAD and commondir (a worktree's).
"""

from bawn.policy.patterns import Matcher

POLICY_NAME = "bawn.toml"

# In a git directory. `config` names programs (fsmonitor, pager, filters, hooksPath), `commondir`
# says which directory's config and hooks are used, `gitdir` which worktree is meant.
GIT_FILES = {
    "config": "git runs the programs it names",
    "config.worktree": "git runs the programs it names",
    "hooks": "git runs what it holds",
    "commondir": "git takes config and hooks from where it points",
    "gitdir": "git trusts it to say which worktree this is",
}
GIT_POINTER = "git takes config and hooks from where it points"
GIT_NAMED = "the git config names it: git runs or obeys it"
# What makes a directory without that name a git directory.
GIT_HEAD, GIT_MARKS = "HEAD", ("objects", "commondir")

_AGENT = "agents on the host obey it"
_EDITOR = "an editor runs or obeys it when the directory is opened"
_SHELL = "a shell runs it when it starts"
_CHDIR = "a shell hook runs it on entering the directory"
_COMMIT = "git hooks that are already installed run what it names"
_START = "a desktop or service manager runs what it names"
_TOOL = "a tool runs it when it is started in the directory"

_BY_REASON = {
    _AGENT: (
        "CLAUDE.md CLAUDE.local.md .claude .mcp.json AGENTS.md AGENT.md AGENTS.override.md .codex "
        "GEMINI.md .gemini QWEN.md .qwen .cursor .cursorrules .cursorignore .windsurf "
        ".windsurfrules .clinerules .roo .roorules .roomodes .kiro .continue .continuerules "
        ".opencode opencode.json opencode.jsonc .amazonq .junie .goosehints .aider.conf.yml .amp "
        ".factory .openhands .hermes.md .agents "
        "**/.github/copilot-instructions.md **/.github/instructions **/.github/prompts"
    ),
    _EDITOR: (
        ".vscode *.code-workspace .idea .fleet .zed .devcontainer .devcontainer.json "
        ".exrc .vimrc .nvimrc .nvim.lua .lvimrc .dir-locals.el .dir-locals-2.el *.sublime-project "
        ".helix"
    ),
    _SHELL: (
        ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv "
        ".zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .inputrc .xprofile .xinitrc "
        ".xsession .xsessionrc **/.config/fish **/.config/nushell"
    ),
    _CHDIR: ".envrc .direnvrc .autoenv.zsh .mise.toml mise.toml .mise **/.config/mise",
    _COMMIT: (
        ".husky .githooks .pre-commit-config.yaml .pre-commit-config.yml lefthook.yml "
        "lefthook.yaml .lefthook.yml .lefthook.yaml .lefthook .gitconfig **/.config/git"
    ),
    _START: "**/.config/autostart **/.config/systemd **/Library/LaunchAgents",
    _TOOL: ".gdbinit .lldbinit .pdbrc .pdbrc.py .Rprofile .irbrc .pryrc .tmux.conf .psqlrc",
}

# Pattern -> why. Patterns are those of `policy.patterns`.
HOST_EXEC = {pattern: why for why, row in _BY_REASON.items() for pattern in row.split()}


_matchers: dict[bool, Matcher] = {}


def matcher(casefold: bool) -> Matcher:
    """All of the table as one, made when it is first asked for."""
    if casefold not in _matchers:
        _matchers[casefold] = Matcher(HOST_EXEC, casefold)
    return _matchers[casefold]
