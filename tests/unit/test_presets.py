"""Presets: what each agent gets in its box, and what it does not get unless the policy names it."""

import json
import tomllib

import pytest

from bawn.facts.model import AgentFact, Facts, HostFact, ImageFact, PathFact, RunscFact
from bawn.plan.agent import AgentSetup, tail_of
from bawn.policy.hosts import GROUPS
from bawn.policy.parse import parse_policy, select
from bawn.teams.presets import PRESETS, setup

WORK = '/home/ann/a "b"'
PACKAGE = "/home/ann/.nvm/lib/node_modules/x"
HOST = HostFact(
    1000, 1000, 1000, 1000, "/home/ann", "host", "6.18.0", "x86_64", 2, (), True, 4194304, 1 << 34, 2
)


def made(
    agent: str,
    policy: str = "",
    words: tuple[str, ...] = (),
    fact: AgentFact | None = None,
    secrets: tuple[str, ...] = (),
    image: ImageFact | None = None,
) -> AgentSetup:
    text = f"version = 1\n[profile.default]\nworkdir = '{WORK}'\n" + (f'agent = "{agent}"\n' if agent else "")
    profile = select(parse_policy(text + policy, "/home/ann/bawn.toml"), None)
    program = f"{PACKAGE}/{agent}"
    facts = Facts(
        HOST, RunscFact("/usr/bin/runsc", "1", ()), None, image or ImageFact(profile.image, ""),
        fact or AgentFact(agent, program, (PACKAGE,), (program,)), WORK, "/s", "/r",
        (PathFact(WORK, WORK, "dir"),), (), have_secrets=secrets,
    )  # fmt: skip
    return setup(profile, facts, words)


def settings(got: AgentSetup) -> dict[str, str]:
    return dict(got.settings)


def test_claude_asks_nothing() -> None:
    got = made("claude")
    assert got.argv == (f"{PACKAGE}/claude", "--dangerously-skip-permissions")
    state = json.loads(settings(got)[".claude/.claude.json"])
    assert state["hasCompletedOnboarding"]
    assert state["projects"] == {WORK: {"hasTrustDialogAccepted": True}}
    assert json.loads(settings(got)[".claude/settings.json"]) == {"skipDangerousModePermissionPrompt": True}
    assert dict(got.env)["CLAUDE_CONFIG_DIR"] == "/home/agent/.claude"


@pytest.mark.parametrize(
    "words", [("--permission-mode", "plan"), ("--permission-mode=plan",), ("--dangerously-skip-permissions",)]
)
def test_a_person_who_says_how_claude_asks_is_obeyed(words: tuple[str, ...]) -> None:
    assert made("claude", words=words).argv == (f"{PACKAGE}/claude", *words)


def test_words_pass_untouched() -> None:
    words = ("-p", "--", "$(x) --profile y", "")
    assert made("claude", words=words).argv[-4:] == words
    assert made("codex", words=words).argv == (f"{PACKAGE}/codex", *words)


def test_codex_has_no_inner_sandbox() -> None:
    config = tomllib.loads(settings(made("codex"))[".codex/config.toml"])
    assert config == {
        "sandbox_mode": "danger-full-access",
        "approval_policy": "never",
        "projects": {WORK: {"trust_level": "trusted"}},
    }


def test_package_is_a_read_only_directory_and_a_lone_program_a_file() -> None:
    (bind,) = made("claude").binds
    assert (bind.source, bind.target, bind.mode, bind.is_dir) == (PACKAGE, PACKAGE, "ro", True)
    node, script = "/home/ann/node", f"{PACKAGE}/cli.js"
    fact = AgentFact("claude", script, (PACKAGE, node), (node, script))
    assert [b.is_dir for b in made("claude", fact=fact).binds] == [True, False]


def test_no_credential_and_no_secret_by_itself() -> None:
    for agent in ("claude", "codex", "shell"):
        got = made(agent)
        assert got.seed == ()
        assert not {name for name, _ in got.env} & {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CODEX_API_KEY"}


def test_named_credentials_go_into_the_config_directory() -> None:
    got = made("codex", 'credentials = ["~/.codex/auth.json"]\n')
    assert got.seed == ((".codex/auth.json", "/home/ann/.codex/auth.json"),)
    assert not got.findings


def test_own_settings_win() -> None:
    got = made("codex", 'credentials = ["~/.codex/config.toml"]\n')
    assert got.settings == ()


def test_credentials_without_an_agent_are_not_dropped_in_silence() -> None:
    (found,) = made("", 'credentials = ["~/.codex/auth.json"]\n').findings
    assert (found.rule, found.severity) == ("BWN715", "error")


def test_two_credentials_of_one_name() -> None:
    got = made("claude", 'credentials = ["~/a/x.json", "~/b/x.json"]\n')
    assert [f.rule for f in got.findings] == ["BWN715"]


def test_missing_agent_tells_how_to_install_it() -> None:
    (found,) = made("codex", fact=AgentFact("codex", "", (), (), ("/usr/bin",))).findings
    assert (found.rule, found.severity, found.fix) == ("BWN708", "error", "npm install -g @openai/codex")


def test_program_that_anybody_may_change() -> None:
    fact = AgentFact("claude", "/p", ("/p",), ("/p",), (), "/p")
    (found,) = made("claude", fact=fact).findings
    assert (found.rule, found.severity) == ("BWN714", "warning")


def test_approval_of_a_key_holds_a_place_for_its_tail_only() -> None:
    text = settings(made("claude", 'secrets = ["ANTHROPIC_API_KEY"]\n', secrets=("ANTHROPIC_API_KEY",)))[
        ".claude/.claude.json"
    ]
    assert json.loads(text)["customApiKeyResponses"]["approved"] == [tail_of("ANTHROPIC_API_KEY")]
    without = json.loads(settings(made("claude"))[".claude/.claude.json"])
    assert without["customApiKeyResponses"]["approved"] == []


def test_shell_of_the_host_only_in_the_host_image() -> None:
    fact = AgentFact("shell", "/usr/bin/zsh", (), ("/usr/bin/zsh",))
    got = made("shell", fact=fact)
    assert (got.argv, dict(got.env)["SHELL"]) == (("/usr/bin/zsh",), "/usr/bin/zsh")
    got = made("shell", 'image = "box"\n', fact=fact)
    assert (got.argv, dict(got.env)["SHELL"]) == (("/bin/sh",), "/bin/sh")


def test_every_provider_group_is_one_that_a_policy_may_allow() -> None:
    assert {p.group for p in PRESETS.values() if p.group} <= set(GROUPS)


def test_an_image_that_brings_the_agent_needs_none_of_the_host() -> None:
    """Also where the host has none: its package is not mounted, its absence is no fault."""
    image = ImageFact("agent-base", "/s/images/agent-base/rootfs", "sha256:x",
                      (("claude", "/usr/local/bin/claude"),))  # fmt: skip
    for fact in (AgentFact("claude", "", (), ()), None):
        got = made("claude", 'image = "agent-base"\n', fact=fact, image=image)
        assert got.argv == ("/usr/local/bin/claude", "--dangerously-skip-permissions")
        assert got.binds == () and got.findings == ()
    assert made("codex", 'image = "agent-base"\n', image=image).binds != ()
