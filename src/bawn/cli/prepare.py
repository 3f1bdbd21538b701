"""From words to a plan, for every verb that needs one: policy found, facts gathered, compiled."""

import sys
from collections.abc import Callable

from bawn.cli.text import escape
from bawn.effects import cache, process
from bawn.errors import UsageError
from bawn.facts import dirs, gather, policy_file
from bawn.facts.model import Facts
from bawn.plan.compile import compile_plan
from bawn.plan.model import Plan
from bawn.policy import parse
from bawn.policy.model import ENGINES, Policy, Profile
from bawn.teams import presets
from bawn.typed import NamedTuple


class Wanted(NamedTuple):
    """What a person may say on the command line about the policy."""

    policy: str = ""
    profile: str = ""
    engine: str = ""
    image: str = ""
    agent: str = ""  # `bawn claude`: the profile of that agent, or the defaults with it
    words: tuple[str, ...] = ()  # the agent's own arguments
    wait: float = 0  # seconds to wait for a docker daemon that is down
    quiet: bool = False  # and say nothing of it


class Prepared(NamedTuple):
    """A plan and what it was made from. `found` is the policy file, None for the defaults."""

    policy: Policy
    profile: Profile
    facts: Facts
    plan: Plan
    found: policy_file.Found | None
    dirs: dirs.Dirs


def prepare(
    wanted: Wanted,
    command: tuple[str, ...],
    require: Callable[[policy_file.Found, dirs.Dirs], policy_file.Found] | None = None,
) -> Prepared:
    """Everything up to the plan. `require` is asked before the policy is believed (trust).

    Raises PolicyError, TrustError, HostError, UsageError.
    """
    for word in (*command, *wanted.words):
        if not word.isascii() and word.encode(errors="surrogateescape").decode(errors="replace") != word:
            raise UsageError(f"an argument that is not UTF-8 cannot stand in a bundle: {word!r}")
    where = dirs.observe()
    found = policy_file.find(dirs.working(), where.config, wanted.policy or None)
    if found and require:
        found = require(found, where)
    policy = parse.parse_policy(found.text, found.path, found.toml) if found else parse.default_policy()
    profile = _select(policy, wanted)
    facts = gather.gather(policy, profile, where, process.run, wanted.wait, None if wanted.quiet else say)
    cache.remember(facts)
    agent = presets.setup(profile, facts, wanted.words)
    plan = compile_plan(policy, profile, facts, command, agent)
    return Prepared(policy, profile, facts, plan, found, where)


def _select(policy: Policy, wanted: Wanted) -> Profile:
    if wanted.agent and not wanted.profile:
        profile = _for_agent(policy, wanted.agent)
    else:
        profile = parse.select(policy, wanted.profile or None)
    if wanted.engine:
        if wanted.engine not in ENGINES:
            allowed = ", ".join(ENGINES)
            raise UsageError(f"no engine {wanted.engine!r}; allowed: {allowed}")
        profile = profile._replace(engine=wanted.engine)
    return profile._replace(image=wanted.image) if wanted.image else profile


def _for_agent(policy: Policy, agent: str) -> Profile:
    """The profile of that agent where the policy has just one, else its default with the agent."""
    mine = [p for p in policy.profiles if p.agent == agent]
    if len(mine) == 1:
        return mine[0]
    profile = parse.select(policy, None if not mine else "default")
    profile = profile._replace(agent=agent, command=())
    if policy.path:
        return profile
    here, group = gather.repository_root(dirs.working()), presets.PRESETS[agent].group
    return profile._replace(workdir=here, egress="proxy", allow=(group,))


def say(text: str) -> None:
    """A line of bawn's own, on stderr; a name in it may be an agent's."""
    line = escape(text).replace("\n", "\\n")
    print(f"bawn: {line}", file=sys.stderr)
