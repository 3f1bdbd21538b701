"""(Policy, Profile, registries) -> what passes the way out of a run. Pure."""

from bawn.facts.model import RegistryFact
from bawn.plan.groups import expand
from bawn.plan.lets_out import lets_out
from bawn.plan.model import EgressPlan, WayOut
from bawn.plan.rules import finding
from bawn.policy.model import Policy, Profile, Wall


def way_out(policy: Policy, profile: Profile, registries: tuple[RegistryFact, ...]) -> WayOut:
    """The patterns of `allow` with every group spelt out, and the networks that no name may lead to."""
    place = f"{policy.path or 'defaults'} profile.{profile.name}"
    meaning = expand(profile.allow, registries)
    allow = tuple((str(pattern), line) for pattern, line in meaning.lines)
    found = [finding("BWN724", f"{place}.allow", problem) for problem in meaning.problems]
    found += [] if allow else [finding("BWN725", f"{place}.allow", "no host can be reached")]
    found += lets_out(profile.allow, place)
    return WayOut(EgressPlan(profile.egress, allow, forbidden(policy.wall)), tuple(found))


def forbidden(wall: Wall) -> tuple[tuple[str, str], ...]:
    """(network, what it is): no name may lead there, whoever lists it."""
    control = [(net, "the control plane (wall.control_plane)") for net in wall.control_plane]
    return (*control, *((net, "denied by wall.deny") for net in wall.deny))
