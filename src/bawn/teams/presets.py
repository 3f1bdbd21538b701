"""Agent presets: what `claude`, `codex` and `shell` need in a box. A table and one function. Pure.

Every agent gets its config *directory* on the private home (a single-file mount of its config fails
at its first rename: EBUSY), only the credentials that the policy names, and its own inner sandbox
and questions off, because the box is the boundary.
"""

import json
from collections.abc import Callable

from bawn.facts.model import AgentFact, Facts
from bawn.plan.agent import AgentSetup, tail_of
from bawn.plan.model import Bind, Finding
from bawn.plan.oci import HOME
from bawn.plan.rules import finding
from bawn.policy.model import Profile
from bawn.typed import NamedTuple


class Preset(NamedTuple):
    """`autonomous` are the words that switch its questions off, unless the person used one of
    `permission` words; `settings(workdir, secrets)` are texts by path below HOME."""

    config: str  # its config directory, below HOME
    env: tuple[tuple[str, str], ...]
    autonomous: tuple[str, ...]
    permission: tuple[str, ...]
    settings: Callable[[str, tuple[str, ...]], dict[str, str]]
    group: str  # its provider, for `allow`
    secrets: tuple[str, ...]  # what it can use, named in a hint only
    install: str


def _claude_settings(workdir: str, secrets: tuple[str, ...]) -> dict[str, str]:
    key = "ANTHROPIC_API_KEY"
    state = {
        "customApiKeyResponses": {"approved": [tail_of(key)] if key in secrets else [], "rejected": []},
        "hasCompletedOnboarding": True,
        "projects": {workdir: {"hasTrustDialogAccepted": True}},
    }
    return {
        ".claude/.claude.json": json.dumps(state),
        ".claude/settings.json": json.dumps({"skipDangerousModePermissionPrompt": True}),
    }


def _codex_settings(workdir: str, secrets: tuple[str, ...]) -> dict[str, str]:
    path = json.dumps(workdir)  # a JSON string is a TOML basic string
    return {
        ".codex/config.toml": 'sandbox_mode = "danger-full-access"\napproval_policy = "never"\n'
        f'[projects.{path}]\ntrust_level = "trusted"\n'
    }


def _shell_settings(workdir: str, secrets: tuple[str, ...]) -> dict[str, str]:
    return {".zshrc": "# bawn: a home of the run's own\n"}  # without one, zsh asks what to put there


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
    "shell": Preset("", (), (), (), _shell_settings, "", (), ""),
}


def setup(profile: Profile, facts: Facts, words: tuple[str, ...] = ()) -> AgentSetup:
    """What the profile's agent adds to a plan; `words` are the person's own arguments to it."""
    place = f"profile.{profile.name}"
    if not profile.agent:
        lost = [
            finding("BWN715", f"{place}.credentials", f"no agent to take {c}") for c in profile.credentials
        ]
        return AgentSetup(findings=tuple(lost))
    preset, fact = PRESETS[profile.agent], _in_image(profile, facts) or facts.agent
    if fact is None or not fact.executable:
        where = ", ".join(fact.searched[:6]) if fact else "nowhere"
        text = f"no {profile.agent} in {where} or the usual places"
        missing = finding("BWN708", f"{place}.agent", text, install=preset.install)
        return AgentSetup(findings=(missing,))
    workdir = next((p.path for p in facts.paths if p.asked == profile.workdir), "")
    asked = any(w == p or w.startswith(p + "=") for w in words for p in preset.permission)
    program, env = fact.argv, preset.env
    if profile.agent == "shell":
        program = fact.argv if profile.image == "host" else ("/bin/sh",)
        env = (*env, ("SHELL", program[0]))
    seed = {_below(preset.config, c): _expand(c, facts) for c in reversed(profile.credentials)}
    # A file of that name that the policy copies is the person's own choice.
    texts = preset.settings(workdir, facts.have_secrets)
    settings = {name: text for name, text in texts.items() if name not in seed}
    return AgentSetup(
        argv=(*program, *(() if asked else preset.autonomous), *words),
        env=env,
        binds=tuple(Bind(m, m, "ro", m not in fact.argv, "agent") for m in fact.mounts),
        dirs=(preset.config,) if preset.config else (),
        seed=tuple(sorted(seed.items())),
        settings=tuple(sorted(settings.items())),
        findings=tuple(_findings(profile, fact)),
    )


def _in_image(profile: Profile, facts: Facts) -> AgentFact | None:
    """The agent's program of the image itself, where it brings one: nothing of the host's is shown then."""
    program = dict(facts.image.programs).get(profile.agent)
    return AgentFact(profile.agent, program, (), (program,)) if program else None


def _findings(profile: Profile, fact: AgentFact) -> list[Finding]:
    place, found = f"profile.{profile.name}", []
    if fact.open_to_all:
        text = f"{fact.open_to_all} can be written by every user of this machine"
        found.append(finding("BWN714", f"{place}.agent", text, path=fact.open_to_all))
    names = [_below("", c) for c in profile.credentials]
    for name in sorted({n for n in names if names.count(n) > 1}):
        found.append(finding("BWN715", f"{place}.credentials", f"more than one file is named {name}"))
    return found


def _below(directory: str, path: str) -> str:
    """Where a credential file goes, below HOME."""
    name = path.rsplit("/", 1)[-1]
    return f"{directory}/{name}" if directory else name


def _expand(path: str, facts: Facts) -> str:
    return facts.host.home + path[1:] if path.startswith("~/") else path
