"""Which limit is held by what, on this machine and for this user. Pure.

A limit that cannot hold says so in the plan (`holds=False`); it is never silently dropped.
"""

from bawn.facts.model import Facts
from bawn.plan.model import LimitPlan
from bawn.policy.model import Profile


def plan_limits(profile: Profile, facts: Facts) -> tuple[LimitPlan, ...]:
    """One entry for each field of `policy.model.Limits`, in its order."""
    if profile.engine == "docker":
        return tuple(
            LimitPlan(name, value, "bawn" if name == "time" else "docker", True)
            for name, value in profile.limits._asdict().items()
        )
    limits, host = profile.limits, facts.host
    controllers = {name for name, _ in host.cgroup_roots}
    pids = "gVisor's RLIMIT_NPROC: processes and threads of the box"
    return (
        _memory(limits.memory, controllers, facts),
        _cpus(limits.cpus, controllers, host.cpus),
        LimitPlan("pids", limits.pids, "cgroup" if "pids" in controllers else "gvisor", True, pids),
        LimitPlan("tmp", limits.tmp, "gvisor", True),
        LimitPlan("home", limits.home, "gvisor", True),
        LimitPlan("open_files", limits.open_files, "gvisor", True, "each process"),
        LimitPlan("time", limits.time, "bawn", True),
    )


def _memory(value: int, controllers: set[str], facts: Facts) -> LimitPlan:
    if "memory" not in controllers:
        note = "no cgroup for this user: sampled every 0.1 s, may be exceeded for that long"
        return LimitPlan("memory", value, "bawn", True, note)
    return LimitPlan("memory", value, "cgroup", True, facts.host.swap_note)


def _cpus(value: int, controllers: set[str], online: int) -> LimitPlan:
    if "cpu" in controllers:
        return LimitPlan("cpus", value, "cgroup", True)
    whole = -(-value // 1000)
    note = f"no cgroup for this user: bound to {min(whole, online)} processors instead"
    return LimitPlan("cpus", value, "affinity", value % 1000 == 0 or whole >= online, note)
