"""A run's plan of the way out, compiled. Pure."""

from bawn.egress.addresses import Forbidden
from bawn.egress.decide import Ruleset, compiled
from bawn.errors import PolicyError
from bawn.plan.model import EgressPlan
from bawn.plan.way_config import Config, read_config
from bawn.policy.hosts import HostPattern


def load(line: bytes) -> Config:
    """The configuration in a line, tried out. Raises PolicyError."""
    config = read_config(line)
    try:
        ruleset(config.egress)
    except ValueError as error:
        raise PolicyError(f"the proxy was given a network that is none: {error}") from None
    return config


def ruleset(egress: EgressPlan, own: tuple[tuple[str, str], ...] = ()) -> Ruleset:
    """`own` are networks that the plan cannot know: the host's addresses at this moment.

    Raises ValueError, PolicyError.
    """
    lines = [(HostPattern.parse(pattern), line) for pattern, line in egress.allow]
    return compiled(lines, Forbidden.of([*egress.deny, *own]))
