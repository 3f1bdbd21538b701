"""Effects that need no root: control groups on a fake tree, programs, atomic files, the run log."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from bawn.effects import cgroup, process
from bawn.effects.atomic import write_atomic
from bawn.effects.names import new_run_id, run_paths
from bawn.effects.remove import remove_tree
from bawn.errors import HostError
from bawn.evidence import runlog
from bawn.evidence.events import Ended, Started
from bawn.facts.host import CONTROLLERS, cgroups
from bawn.plan.model import LimitPlan, Plan

LIMITS = (
    LimitPlan("memory", 300 << 20, "cgroup", True),
    LimitPlan("cpus", 1500, "cgroup", True),
    LimitPlan("pids", 100, "cgroup", True),
)


def plan(limits: tuple[LimitPlan, ...] = LIMITS) -> Plan:
    fields: dict[str, object] = dict.fromkeys(Plan._fields, ())
    return Plan(**{**fields, "limits": limits})  # type: ignore[arg-type]


def test_cgroup_v1(tmp_path: Path) -> None:
    roots = tuple((c, str(tmp_path / c)) for c in CONTROLLERS)
    groups = cgroup.make(plan(), 1, roots, "R")
    memory, cpu, pids = (tmp_path / c / "bawn/R" for c in ("memory", "cpu", "pids"))
    assert (memory / "memory.limit_in_bytes").read_text() == str(300 << 20)
    assert (memory / "memory.memsw.limit_in_bytes").read_text() == str(300 << 20)
    assert (cpu / "cpu.cfs_quota_us").read_text() == "150000"
    assert int((pids / "pids.max").read_text()) > 100
    assert len(groups.procs) == 3
    (memory / "memory.max_usage_in_bytes").write_text("12345\n")
    (memory / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    (pids / "pids.events").write_text("max 7\n")
    assert cgroup.usage(groups) == (12345, 2, 7)


def test_a_limit_that_cannot_be_set_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "memory/bawn").mkdir(parents=True)
    (tmp_path / "memory/bawn/R").touch()
    with pytest.raises(HostError, match="cannot set a limit"):
        cgroup.make(plan(), 1, (("memory", str(tmp_path / "memory")),), "R")


def test_swap_that_cannot_be_bounded_is_not_written(tmp_path: Path) -> None:
    limits = (LIMITS[0]._replace(note="this machine has no swap"), *LIMITS[1:])
    cgroup.make(plan(limits), 1, (("memory", str(tmp_path)),), "R")
    assert not (tmp_path / "bawn/R/memory.memsw.limit_in_bytes").exists()


V1 = "30 1 0:20 / /c/memory rw - cgroup c rw,memory\n31 1 0:21 / /c/pids rw - cgroup c rw,pids\n"
V2 = "40 1 0:30 / {root} rw - cgroup2 c rw\n"


def test_which_cgroups_can_be_made(tmp_path: Path) -> None:
    assert cgroups("", "", 0) == (0, ())
    assert cgroups(V1, "", 0) == (1, ())  # not writable here
    delegated = tmp_path / "user.slice/app"
    delegated.mkdir(parents=True)
    for directory in (tmp_path, tmp_path / "user.slice", delegated):
        (directory / "cgroup.procs").touch()
        (directory / "cgroup.subtree_control").write_text("")
    (tmp_path / "user.slice/cgroup.subtree_control").write_text("memory pids")
    version, roots = cgroups(V2.format(root=tmp_path), "0::/user.slice/app\n", 1000)
    assert version == 2
    assert roots == (("memory", f"{tmp_path}/user.slice"), ("pids", f"{tmp_path}/user.slice"))


def python(code: str, **options: object) -> process.Result:
    return process.run([sys.executable, "-c", code], timeout=10, **options)  # type: ignore[arg-type]


def test_both_pipes_are_drained_at_once() -> None:
    done = python("import os; [os.write(f, b'x' * 1000) for _ in range(300) for f in (1, 2)]", cap=1 << 20)
    assert (len(done.out), len(done.err), done.code) == (300_000, 300_000, 0)


def test_input_is_fed_and_the_environment_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "leak")
    done = python("import os, sys; print(sys.stdin.read()[::-1], os.environ)", input=b"abc")
    assert done.text.startswith("cba")
    assert "leak" not in done.text
    assert python("import sys; print(repr(sys.stdin.read()))").text == "''\n"


def test_late_missing_and_chatty_tools_are_errors() -> None:
    start = time.monotonic()
    with pytest.raises(HostError, match="did not answer"):
        process.run(["sleep", "60"], timeout=0.3)
    assert time.monotonic() - start < 5
    with pytest.raises(HostError, match="not installed"):
        process.run(["no-such-tool-here"], timeout=1)
    with pytest.raises(HostError, match="more than 1000 bytes"):
        python("print('x' * 5000)", cap=1000)


def test_write_atomic(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    write_atomic(str(path), b"new", 0o640)
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("size", [0, 100, 4096])
def test_a_full_disk_leaves_the_old_bytes(tmp_path: Path, size: int) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    child = os.fork()
    if child == 0:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            write_atomic(str(path), b"n" * 8192, 0o600)
        except OSError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_run_ids_are_of_one_length_and_in_order() -> None:
    ids = [new_run_id() for _ in range(50)]
    assert len(set(ids)) == 50
    assert {len(i) for i in ids} == {17}
    assert [i[:11] for i in ids] == sorted(i[:11] for i in ids)
    paths = run_paths("/run/bawn", "X")
    assert all(p.startswith("/run/bawn/runs/X") for p in paths)
    assert len(set(paths)) == len(paths)


def test_remove_tree_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").touch()
    (tmp_path / "t/d").mkdir(parents=True)
    (tmp_path / "t/d/link").symlink_to(outside)
    remove_tree(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()
    assert (outside / "keep").exists()


def test_run_log(tmp_path: Path) -> None:
    state = str(tmp_path / "s")
    assert list(runlog.read(state)) == []
    runlog.append(state, Started("r", "t", "p", "x", "gvisor", ("a\udcff", "b"), "/w", "", ()))
    runlog.append(state, Ended("r", "t", 0, "exit", 5, -1, (), (), ()))
    with (tmp_path / "s/runs.jsonl").open("a") as file:
        file.write("garbage\n")
    assert [e["event"] for e in runlog.read(state)] == ["started", "ended", "unreadable"]
    assert (tmp_path / "s/runs.jsonl").stat().st_mode & 0o077 == 0
    with pytest.raises(HostError, match="cannot write the run log"):
        runlog.append("/proc/nowhere", Ended("r", "t", 0, "exit", 5, -1, (), (), ()))
