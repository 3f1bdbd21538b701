"""Agent presets: what `claude`, `codex` and `shell` need in a box. A table and one function. Pure.

Every agent gets its config *directory* on the private home (a single-file mount of its config fails
at its first rename: EBUSY), only the credentials that the policy names, and its own inner sandbox
and questions off, because the box is the boundary.
"""

import json
from collections.abc import Callable

from bawn.facts.model import Facts
from bawn.plan.agent import AgentSetup
from bawn.plan.model import Bind
from bawn.plan.oci import HOME
from bawn.plan.rules import finding
from bawn.policy.model import Profile
from bawn.typed import NamedTuple


class Preset(NamedTuple):
    """`autonomous` are the words that switch its questions off, unless the person used one of
    `permission` words; `settings(workdir)` are texts by path below HOME."""

    config: str  # its config directory, below HOME
    env: tuple[tuple[str, str], ...]
    autonomous: tuple[str, ...]
    permission: tuple[str, ...]
    settings: Callable[[str], dict[str, str]]
    group: str  # its provider, for `allow`
    secrets: tuple[str, ...]  # what it can use, named in a hint only
    install: str


def _claude_settings(workdir: str) -> dict[str, str]:
    state = {
        "hasCompletedOnboarding": True,
        "bypassPermissionsModeAccepted": True,
        "projects": {workdir: {"hasTrustDialogAccepted": True}},
    }
    return {
        ".claude/.claude.json": json.dumps(state),
        ".claude/settings.json": json.dumps({"skipDangerousModePermissionPrompt": True}),
    }


def _codex_settings(workdir: str) -> dict[str, str]:
    path = json.dumps(workdir)  # a JSON string is a TOML basic string
    return {
        ".codex/config.toml": 'sandbox_mode = "danger-full-access"\napproval_policy = "never"\n'
        f'[projects.{path}]\ntrust_level = "trusted"\n'
    }


def _no_settings(workdir: str) -> dict[str, str]:
    return {}


PRESETS = {
    "claude": Preset(
        config=".claude",
        env=(
            ("CLAUDE_CONFIG_DIR", f"{HOME}/.claude"),
            ("DISABLE_AUTOUPDATER", "1"),  # the package is read-only
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),  # only the provider is reachable
            ("IS_SANDBOX", "1"),  # uid 0 in a rootless box; without it claude refuses to run so
        ),
        autonomous=("--dangerously-skip-permissions",),
        permission=("--dangerously-skip-permissions", "--permission-mode"),
        settings=_claude_settings,
        group="@anthropic",
        secrets=("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"),
        install="npm install -g @anthropic-ai/claude-code",
    ),
    "codex": Preset(
        config=".codex",
        env=(("CODEX_HOME", f"{HOME}/.codex"),),
        autonomous=(),  # its config file says it
        permission=(),
        settings=_codex_settings,
        group="@openai",
        secrets=("OPENAI_API_KEY", "CODEX_API_KEY"),
        install="npm install -g @openai/codex",
    ),
    "shell": Preset("", (), (), (), _no_settings, "", (), ""),
}


def setup(profile: Profile, facts: Facts, words: tuple[str, ...] = ()) -> AgentSetup:
    """What the profile's agent adds to a plan; `words` are the person's own arguments to it."""
    if not profile.agent:
        return AgentSetup()
    preset, fact = PRESETS[profile.agent], facts.agent
    if fact is None or not fact.executable:
        where = ", ".join(fact.searched[:6]) if fact else "nowhere"
        text = f"no {profile.agent} in {where} or the usual places"
        missing = finding("BWN708", f"profile.{profile.name}.agent", text, install=preset.install)
        return AgentSetup(findings=(missing,))
    workdir = next((p.path for p in facts.paths if p.asked == profile.workdir), "")
    asked = any(w == p or w.startswith(p + "=") for w in words for p in preset.permission)
    return AgentSetup(
        argv=(*fact.argv, *(() if asked else preset.autonomous), *words),
        env=preset.env,
        binds=tuple(Bind(m, m, "ro", m != fact.executable, "agent") for m in fact.mounts),
        dirs=(preset.config,) if preset.config else (),
        seed=tuple((f"{preset.config}/{_name(c)}", _expand(c, facts)) for c in profile.credentials),
        settings=tuple(sorted(preset.settings(workdir).items())),
    )


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _expand(path: str, facts: Facts) -> str:
    return facts.host.home + path[1:] if path.startswith("~/") else path
