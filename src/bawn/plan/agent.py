"""What an agent preset adds to a plan. Filled by `teams.presets`, which plan cannot import."""

from bawn.plan.model import Bind, Finding
from bawn.typed import NamedTuple


def tail_of(secret: str) -> str:
    """Stands in a settings text for the last 20 characters of a secret's value, which no plan holds.

    By those Claude Code knows a key that its person has agreed to use.
    """
    return f"${{{secret}: -20}}"


class AgentSetup(NamedTuple):
    """All of it optional: a profile without an agent has the empty one."""

    argv: tuple[str, ...] = ()  # the agent's own command line, inside the box
    env: tuple[tuple[str, str], ...] = ()
    binds: tuple[Bind, ...] = ()  # its package, read-only
    dirs: tuple[str, ...] = ()  # its config directories, below HOME
    seed: tuple[tuple[str, str], ...] = ()  # (path below HOME, credential file on the host)
    settings: tuple[tuple[str, str], ...] = ()  # (path below HOME, text)
    findings: tuple[Finding, ...] = ()


NO_AGENT = AgentSetup()
