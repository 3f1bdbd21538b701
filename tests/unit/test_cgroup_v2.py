"""Control groups, version 2: what is written where (a plain directory stands in for the kernel's)."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bawn.effects import cgroup, docker_cgroup, gvisor, sweep
from bawn.effects.names import run_paths
from bawn.evidence.events import Silent
from bawn.facts import host
from bawn.facts.model import Facts
from bawn.plan.model import LimitPlan
from tests.unit.docker_world import PLAN
from tests.unit.test_presets import HOST

LIMITS = tuple(
    LimitPlan(limit.name, limit.value, "cgroup" if limit.name in ("memory", "cpus", "pids") else "bawn", True)
    for limit in PLAN.limits
)


def test_every_group_above_passes_the_controllers_on(tmp_path: Path) -> None:
    """Without this the run's group has no memory.max, and nothing could start on a v2 machine."""
    (tmp_path / "bawn").mkdir()
    (tmp_path / "cgroup.subtree_control").write_text("memory pids\n")
    (tmp_path / "bawn/cgroup.subtree_control").write_text("\n")
    roots = tuple((controller, str(tmp_path)) for controller in ("memory", "pids", "cpu"))
    groups = cgroup.make(PLAN._replace(limits=LIMITS), 2, roots, "0123456789abcdef0")
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu"
    assert (tmp_path / "bawn/cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    mine = tmp_path / "bawn/0123456789abcdef0"
    assert {p.name: p.read_text() for p in mine.iterdir()} == {
        "memory.max": str(2 << 30), "memory.swap.max": "0", "cpu.max": "200000 100000",
        "pids.max": str(512 * cgroup.PIDS_FACTOR + cgroup.PIDS_EXTRA),
    }  # fmt: skip
    assert groups.procs == [f"{mine}/cgroup.procs"]
    (mine / "memory.events").write_text("oom 1\noom_kill 1\n")
    assert cgroup.usage(groups) == (-1, 1, 0)


@pytest.mark.parametrize(
    ("uid", "top", "holds"),
    [
        (0, True, ("memory", "cpu", "pids")),  # Debian 13: systemd has asked the top for two only
        (1000, True, ("memory", "pids")),
        (0, False, ("memory", "pids")),  # in a container: what it was given, since it may be full
    ],
)
def test_what_can_be_had(tmp_path: Path, uid: int, top: bool, holds: tuple[str, ...]) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory hugetlb pids rdma misc\n")
    (tmp_path / "cgroup.subtree_control").write_text("memory pids\n")
    (tmp_path / "cgroup.procs").write_text("")
    if not top:
        (tmp_path / "cgroup.type").write_text("domain\n")
    mountinfo = f"24 23 0:21 / {tmp_path} rw - cgroup2 cgroup2 rw\n"
    version, roots = host.cgroups(mountinfo, "0::/system.slice/bawn.service\n", uid)
    assert version == 2
    assert sorted(roots) == sorted((controller, str(tmp_path)) for controller in holds)


def test_sweep_finds_a_group_that_was_made_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run below `user@UID.service` that was killed; then `bawn sweep` in a login session of the same user,
    to whom nothing is delegated there. Seen on Debian 13: "swept", and the group stayed for ever."""
    run_id, runtime = "0123456789abcdef0", str(tmp_path / "run")
    paths = run_paths(runtime, run_id)
    group = tmp_path / "user@1000.service/bawn" / run_id
    host_fact = HOST._replace(cgroup=2, cgroup_roots=(("memory", str(group.parents[1])),))
    facts = cast(Facts, SimpleNamespace(runtime=runtime, host=host_fact))

    class Killed(BaseException):
        """bawn ends here, and tidies nothing."""

    def killed(*_: object) -> None:
        group.mkdir(parents=True)
        raise Killed

    monkeypatch.setattr(gvisor, "write_files", lambda *_: None)
    monkeypatch.setattr(cgroup, "make", killed)
    monkeypatch.setattr(gvisor, "close_run", lambda _, lock: os.close(lock))
    with pytest.raises(Killed):
        gvisor.run(PLAN._replace(limits=LIMITS), facts, run_id, tty=False, secrets={}, observer=Silent())
    assert group.exists()
    assert sweep.sweep(runtime, host_fact._replace(cgroup_roots=())) == ((run_id,), ())
    assert not group.exists() and not os.path.exists(paths.directory)


def test_docker_with_the_systemd_driver() -> None:
    """Captured on Debian 13, kernel 6.12, docker 26.1: one group, of systemd's scope for the container."""
    scope = "system.slice/docker-5084690517cee257076b3e32f6b2e7d16b3f33c93e160f521c79a57e392a509f.scope"
    mountinfo = (
        "32 24 0:27 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:8 "
        "- cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
    )
    assert docker_cgroup.limiting(f"0::/{scope}\n", mountinfo) == [("", f"/sys/fs/cgroup/{scope}")]
