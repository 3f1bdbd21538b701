"""Text -> Policy: what it gets, what it inherits, which profile is meant."""

import pytest

from bawn.digest import sha256_hex
from bawn.errors import PolicyError
from bawn.policy.model import DEFAULT_MASK, Limits, Mount, Outbound, Place, Policy, Profile, Secret, Wall
from bawn.policy.parse import default_policy, parse_policy, select, toml
from bawn.policy.show import show_profile
from tests.unit.test_policy_corpus import HERE


def parse(text: str) -> Policy:
    return parse_policy("version = 1\n" + text, "/p/bawn.toml")


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(PolicyError) as caught:
        parse(text)
    return caught.value.problems


def test_the_sketch_of_the_design() -> None:
    policy = parse_policy((HERE / "good" / "sketch.toml").read_text(), "/p/bawn.toml")
    assert policy.wall == Wall(("203.0.113.0/24",), ())
    assert policy.outbound == Outbound(("~/vaults/notes/out",), (".env*", "**/.git/**", "**/credentials*"))
    (build,) = policy.profiles
    assert build.agent == "claude"
    assert build.workdir == "~/src/shop"
    assert build.egress == "proxy"
    assert build.allow == ("@anthropic", "@npm", "github.com:443", "*.example.org:443")
    assert build.secrets == (Secret("ANTHROPIC_API_KEY"),)
    assert build.limits == Limits()
    assert build.mounts == (
        Mount(
            "~/vaults/notes", "ro", ("inbox", "daily"), (".env", ".env.*"), False,
            Place(0, "profile.build.mount[0]"),
        ),
    )  # fmt: skip


def test_every_field_is_read() -> None:
    policy = parse_policy((HERE / "good" / "everything.toml").read_text(), "/p/bawn.toml")
    minimal, full = policy.profiles
    default = select(default_policy(), None)
    unlike = {name for name in Profile._fields if getattr(full, name) == getattr(default, name)}
    assert unlike == {"engine", "image"}  # written out as what the defaults are without a policy
    assert full.command == ("sh", "-c", "set -e\nmake\ttest\n")
    assert full.limits == Limits(3 << 29, 1500, 256, 64 << 20, 10**9, 1024, 90)
    assert full.env == (
        ("RUST_LOG", "debug"),
        ("PUBLIC_KEY", "not a secret"),
        ("EMPTY_TOKEN", ""),
        ("LD_PRELOAD", "/usr/lib/libfaketime.so"),
    )
    assert full.secrets == (Secret("OPENAI_API_KEY"), Secret("DB_URL", "~/.config/shop/db"))
    assert full.mask == ()
    assert full.mounts[0].mask == ("/private/", "**/*.key")
    assert full.mounts[1].mask == (".env", ".env.*", "*.pem")  # that of [defaults]
    assert minimal.mask == (".env", ".env.*", "*.pem")
    assert (minimal.engine, minimal.egress) == ("docker", "bridge")
    assert minimal.image == "registry.test:5000/team/agent-base@sha256:0123"
    assert minimal.limits == Limits(memory=3 << 29, time=90)
    assert policy.wall.deny == ("198.51.100.7/32",)


def test_the_hash_is_of_the_bytes() -> None:
    text = "version = 1\r\n[profile.default]\n# é\n"
    assert parse_policy(text, "").sha256 == sha256_hex(text.encode())


def test_the_defaults_deny() -> None:
    """Absence denies: no network, no secret, no variable, masks on."""
    for profile in (select(default_policy(), None), parse("[profile.x]").profiles[0]):
        assert profile.egress == "none"
        assert profile.engine == "gvisor"
        assert profile.mask == DEFAULT_MASK
        assert profile.limits == Limits()
        assert profile.workdir == "."
        assert profile.workdir_mode == "rw"
        assert not profile.git_links
        for name in (
            "allow",
            "secrets",
            "credentials",
            "env",
            "pass_env",
            "mounts",
            "overrides",
            "host_exec",
        ):
            assert getattr(profile, name) == ()
    assert default_policy().path == ""
    assert parse('[profile.x]\n[[profile.x.mount]]\nsource = "/a"').profiles[0].mounts[0].mode == "ro"


def test_limits_are_merged_one_by_one() -> None:
    policy = parse(
        '[defaults.limits]\nmemory = "1GiB"\npids = 100\n'
        '[profile.a.limits]\nmemory = "3GiB"\ntmp = "1MiB"\n[profile.b]\n'
    )
    a, b = policy.profiles
    assert a.limits == Limits(memory=3 << 30, pids=100, tmp=1 << 20)
    assert b.limits == Limits(memory=1 << 30, pids=100)


def test_an_empty_mask_is_written_out() -> None:
    policy = parse('[profile.a]\nmask = []\n[[profile.a.mount]]\nsource = "/x"\n')
    assert policy.profiles[0].mask == ()
    assert policy.profiles[0].mounts[0].mask == DEFAULT_MASK


def test_what_could_not_be_read_is_not_judged_again() -> None:
    """One problem for one mistake: nothing is said of what follows from it."""
    found = problems(
        '[profile.a]\nworkdir_mode = "R0"\nwrite = ["x"]\negress = "Proxie"\nallow = ["a.test"]\nenv = 3\n'
        'secrets = 4\npass_env = 5\n[[profile.a.mount]]\nsource = "/x"\nmode = "?"\nwrite = ["y"]\n'
    )
    assert len(found) == 6


def test_all_problems_at_once_in_the_order_of_the_file() -> None:
    found = problems('[wall]\ndeny = ["x"]\n[profile.b]\nagent = 1\nx = 1\n[profile.a]\ny = 1\n')
    assert [line.split(": ")[0] for line in found] == [f"/p/bawn.toml:{n}" for n in (3, 5, 6, 8)]


def test_no_problem_line_can_be_forged() -> None:
    """A path and a key are of unknown origin too."""
    with pytest.raises(PolicyError) as caught:
        parse_policy('version = 1\n"\\u001b[2J\\nx" = 1\n[profile.a]', "/p/\x1b[31m\n/bawn.toml")
    (problem,) = caught.value.problems
    assert problem.isprintable()


def test_a_relative_source_is_told_its_absolute_form() -> None:
    (problem,) = problems('[[profile.a.mount]]\nsource = "./vault/x"\n')
    assert problem.endswith('fix: write `source = "/p/vault/x"`')
    with pytest.raises(PolicyError) as caught:
        parse_policy('version = 1\n[[profile.a.mount]]\nsource = "x"\n', "bawn.toml")
    assert "<the policy's directory>/x" in caught.value.problems[0]


def test_lone_surrogates_are_no_text() -> None:
    with pytest.raises(PolicyError, match="not TOML"):
        parse_policy("version = 1\n# \ud800\n[profile.a]", "/p")


def test_data_that_is_known_is_not_read_again() -> None:
    text = 'version = 1\n[profile.a]\nlimits = { cpus = 1.5 }\n[[profile.a.mount]]\nsource = "/x"\n'
    assert parse_policy(text, "/p", toml(text, "/p")) == parse_policy(text, "/p")
    with pytest.raises(PolicyError):  # and is judged all the same
        parse_policy(text, "/p", {"version": 1, "profile": {"a": {"agent": "?"}}})


@pytest.mark.parametrize(
    ("text", "name", "chosen"),
    [
        ("[profile.a]\n[profile.default]\n[profile.b]", None, "default"),
        ("[profile.a]\n[profile.default]\n[profile.b]", "b", "b"),
        ("[profile.only]", None, "only"),
        ("[profile.only]", "", "only"),
    ],
)
def test_select(text: str, name: str | None, chosen: str) -> None:
    assert select(parse(text), name).name == chosen


@pytest.mark.parametrize(
    ("name", "words"),
    [(None, ("several profiles", "a, b", "--profile a")), ("c", ("no profile 'c'", "a, b", "--profile a"))],
)
def test_select_lists_them(name: str | None, words: tuple[str, ...]) -> None:
    with pytest.raises(PolicyError) as caught:
        select(parse("[profile.a]\n[profile.b]"), name)
    said = "\n".join(caught.value.diagnostics())
    assert all(word in said for word in words)
    with pytest.raises(PolicyError, match="built-in policy has no profile 'x'; it has default"):
        select(default_policy(), "x")


def test_shown_profiles_load_as_the_same() -> None:
    for path in sorted((HERE / "good").glob("*.toml")):
        for profile in parse_policy(path.read_text(), "/p").profiles:
            again = select(parse_policy(show_profile(profile), "/p"), None)
            assert again == profile


def test_the_presets_are_those_of_the_teams() -> None:
    from bawn.policy.fields import AGENTS
    from bawn.teams.presets import PRESETS

    assert set(AGENTS) == set(PRESETS)
