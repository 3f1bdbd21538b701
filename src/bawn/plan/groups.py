"""The `@` groups of an allow-list: hosts that belong together. A table and two functions. Pure.

The hosts of a provider stand here, each with what it is for. Those of a registry differ from machine
to machine (a company has its mirror), so they are facts (`facts.registries`) and stand nowhere.
"""

from bawn.facts.model import RegistryFact
from bawn.policy.hosts import HostPattern
from bawn.typed import NamedTuple


class Member(NamedTuple):
    host: str  # name:port
    why: str


class Group(NamedTuple):
    """What a group means here. With a `problem` some or all of it is missing."""

    name: str
    members: tuple[Member, ...]
    source: str
    problem: str = ""
    fix: str = ""


class Expanded(NamedTuple):
    """Patterns, each with its line of the policy, and what of the list has no meaning here."""

    lines: tuple[tuple[HostPattern, str], ...]
    problems: tuple[str, ...]


PROVIDERS: dict[str, tuple[Member, ...]] = {
    "@anthropic": (
        Member("api.anthropic.com:443", "the API"),
        Member("platform.claude.com:443", "renews the token of a login"),
        Member("claude.ai:443", "the login of a subscription"),
    ),
    "@openai": (
        Member("api.openai.com:443", "the API"),
        Member("auth.openai.com:443", "renews the token of a login"),
        Member("chatgpt.com:443", "the API of a login by subscription"),
    ),
    "@github": (
        Member("github.com:443", "git over https, and downloads of releases"),
        Member("api.github.com:443", "the API"),
        Member("codeload.github.com:443", "archives of a repository"),
        Member("raw.githubusercontent.com:443", "single files of a repository"),
        Member("objects.githubusercontent.com:443", "large files"),
        Member("release-assets.githubusercontent.com:443", "files of releases"),
    ),
}
REGISTRIES = {"@npm": "npm", "@pypi": "pip", "@debian": "apt"}


def groups(registries: tuple[RegistryFact, ...]) -> tuple[Group, ...]:
    """Every group there is, as this machine understands it."""
    known = {fact.group: fact for fact in registries}
    fixed = [Group(name, members, "bawn's own table") for name, members in PROVIDERS.items()]
    return (*fixed, *(_registry(name, known.get(name)) for name in REGISTRIES))


def expand(allow: tuple[str, ...], registries: tuple[RegistryFact, ...]) -> Expanded:
    """The patterns of a profile's `allow`. A group without hosts allows nothing, and is a problem."""
    known = {group.name: group for group in groups(registries)}
    lines: list[tuple[HostPattern, str]] = []
    problems = []
    for line in allow:
        if not line.startswith("@"):
            lines.append((HostPattern.parse(line), line))
            continue
        group = known[line]
        lines += [(HostPattern.parse(member.host), line) for member in group.members]
        if group.problem:
            problems.append(f"{line}: {group.problem}; fix: {group.fix}")
    return Expanded(tuple(lines), tuple(problems))


def wants_registries(allow: tuple[str, ...]) -> tuple[str, ...]:
    """The groups of `allow` that must be looked up on the machine."""
    return tuple(name for name in REGISTRIES if name in allow)


def _registry(name: str, fact: RegistryFact | None) -> Group:
    client = REGISTRIES[name]
    if fact is None:
        return Group(name, (), f"{client}'s configuration", "not looked up", "bawn egress groups")
    members = tuple(Member(host, f"{client} fetches from it") for host in fact.hosts)
    source = ", ".join(fact.sources) or f"{client}'s configuration"
    return Group(name, members, source, fact.problem, fact.fix)
