"""Groups: what they stand for; and what a listed host still lets out."""

import pytest

from bawn.facts.model import RegistryFact
from bawn.plan.groups import PROVIDERS, REGISTRIES, expand, groups, wants_registries
from bawn.plan.lets_out import lets_out
from bawn.policy.hosts import GROUPS, HostPattern

NPM = RegistryFact("@npm", ("npm.corp.test:8443",), ("/etc/npmrc",))


def test_every_group_of_the_grammar_has_a_meaning() -> None:
    assert {*PROVIDERS, *REGISTRIES} == set(GROUPS)
    assert [one.name for one in groups(())] == [*PROVIDERS, *REGISTRIES]


def test_members_are_lines_of_their_own_normal_form() -> None:
    for members in PROVIDERS.values():
        for member in members:
            assert str(HostPattern.parse(member.host)) == member.host
            assert member.why


def test_expanded() -> None:
    found = expand(("a.test", "@github", "@npm", "*.b.test:80"), (NPM,))
    assert found.problems == ()
    assert (HostPattern("a.test", False, 443), "a.test") in found.lines
    assert (HostPattern("npm.corp.test", False, 8443), "@npm") in found.lines
    assert (HostPattern("github.com", False, 443), "@github") in found.lines
    assert len(found.lines) == 3 + len(PROVIDERS["@github"])


def test_a_group_that_is_not_known_here_allows_nothing() -> None:
    broken = RegistryFact("@pypi", (), (), "pip names no index", "pip config set ...")
    found = expand(("@npm", "@pypi"), (broken,))
    assert found.lines == ()
    assert [text.split(":")[0] for text in found.problems] == ["@npm", "@pypi"]
    assert all("fix: " in text for text in found.problems)


def test_only_what_is_listed_is_looked_up() -> None:
    assert wants_registries(("a.test", "@github")) == ()
    assert wants_registries(("@debian", "@npm")) == ("@npm", "@debian")


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("a.test", []),
        ("*.a.test", ["BWN720"]),
        ("github.com", ["BWN721"]),
        ("API.github.com:443", ["BWN721"]),
        ("notgithub.com", []),
        ("github.com.evil.test", []),
        ("*.github.com", ["BWN720", "BWN721"]),
        ("@github", ["BWN721"]),
        ("@anthropic", ["BWN722"]),
        ("@openai", ["BWN722"]),
        ("*.googleapis.com", ["BWN720", "BWN722"]),
        ("@npm", ["BWN723"]),
        ("@pypi", ["BWN723"]),
        ("@debian", []),
    ],
)
def test_what_a_line_lets_out(line: str, rules: list[str]) -> None:
    found = lets_out(("first.test", line), "bawn.toml profile.x")
    assert [one.rule for one in found] == rules
    assert all(one.severity == "warning" and one.fix for one in found)
    assert all(one.place == "bawn.toml profile.x.allow[1]" for one in found)
