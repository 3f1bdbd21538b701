"""What the proxy of a run is told: whose it is, and what passes. One JSON line, read strictly. Pure."""

import json

from bawn.errors import PolicyError
from bawn.plan.model import EgressPlan
from bawn.policy.model import EGRESSES
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
        named = _text(run), _text(profile)
    except (ValueError, TypeError) as error:
        raise PolicyError(f"the proxy was given no configuration: {error}") from None
    if mode not in EGRESSES[1:]:
        raise PolicyError(f"the proxy was given the mode {mode!r}; allowed: {', '.join(EGRESSES[1:])}")
    return Config(*named, EgressPlan(mode, *pairs))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} where a text was meant")
    return value
