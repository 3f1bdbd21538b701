"""Control groups, version 2: what is written where (a plain directory stands in for the kernel's)."""

from pathlib import Path

from bawn.effects import cgroup
from bawn.plan.model import LimitPlan
from tests.unit.docker_world import PLAN

LIMITS = tuple(
    LimitPlan(limit.name, limit.value, "cgroup" if limit.name in ("memory", "cpus", "pids") else "bawn", True)
    for limit in PLAN.limits
)


def test_the_parent_passes_its_controllers_on(tmp_path: Path) -> None:
    """Without this the run's group has no memory.max, and nothing could start on a v2 machine."""
    roots = tuple((controller, str(tmp_path)) for controller in ("memory", "pids", "cpu"))
    groups = cgroup.make(PLAN._replace(limits=LIMITS), 2, roots, "0123456789abcdef0")
    assert (tmp_path / "bawn/cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    mine = tmp_path / "bawn/0123456789abcdef0"
    assert {p.name: p.read_text() for p in mine.iterdir()} == {
        "memory.max": str(2 << 30), "memory.swap.max": "0", "cpu.max": "200000 100000",
        "pids.max": str(512 * cgroup.PIDS_FACTOR + cgroup.PIDS_EXTRA),
    }  # fmt: skip
    assert groups.procs == [f"{mine}/cgroup.procs"]
