"""What the proxy of a run is told: whose it is and what passes. JSON, read strictly. Pure."""

import json

from bawn.egress.addresses import Forbidden
from bawn.egress.decide import Ruleset, compiled
from bawn.errors import PolicyError
from bawn.plan.model import EgressPlan
from bawn.policy.hosts import HostPattern
from bawn.typed import Any, NamedTuple


class Config(NamedTuple):
    run: str
    profile: str
    egress: EgressPlan


def write_config(config: Config) -> bytes:
    """One line."""
    egress = config.egress
    return json.dumps([config.run, config.profile, [egress.mode, egress.allow, egress.deny]]).encode() + b"\n"


def read_config(line: bytes) -> Config:
    """Raises PolicyError: what cannot be read replaces nothing."""
    try:
        run, profile, (mode, allow, deny) = json.loads(line)
        pairs = tuple((_text(a), _text(b)) for a, b in allow), tuple((_text(a), _text(b)) for a, b in deny)
        config = Config(_text(run), _text(profile), EgressPlan(mode, *pairs))
        ruleset(config.egress)
    except (ValueError, TypeError) as error:
        raise PolicyError(f"the proxy was given no configuration: {error}") from None
    if mode not in ("proxy", "bridge"):
        raise PolicyError(f"the proxy was given the mode {mode!r}; allowed: proxy, bridge")
    return config


def ruleset(egress: EgressPlan, own: tuple[tuple[str, str], ...] = ()) -> Ruleset:
    """`own` are networks that the plan cannot know: the host's addresses at this moment.

    Raises ValueError, PolicyError.
    """
    lines = [(HostPattern.parse(pattern), line) for pattern, line in egress.allow]
    return compiled(lines, Forbidden.of([*egress.deny, *own]))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} where a text was meant")
    return value
