"""One run, whole: sweep the dead, log the start, run the box, scan what it left, log the end."""

import os

from bawn.effects import names, sweep
from bawn.effects.outcome import Outcome
from bawn.errors import BawnError, HostError
from bawn.evidence import runlog
from bawn.evidence.events import Ended, Observer, Started
from bawn.facts.model import Facts
from bawn.plan.model import Plan


def run(plan: Plan, facts: Facts, *, secrets: dict[str, str], tty: bool, observer: Observer) -> Ended:
    """Runs the plan in its engine. The plan has no errors (the caller has refused those).

    Raises HostError or EngineError when the box could not be started; the log says so too.
    """
    if sweep.dead(facts.runtime):
        sweep.sweep(facts.runtime, facts.host)
    run_id = names.new_run_id()
    _make_write_roots(plan)
    runlog.append(
        facts.state,
        Started(
            run_id, runlog.utc_now(), plan.id, plan.profile, plan.engine, plan.command,
            plan.workdir, plan.policy, plan.overrides,
        ),
    )  # fmt: skip
    try:
        outcome = _engine(plan, facts, run_id, secrets, tty, observer)
    except BawnError as error:
        failed = Outcome(error.exit_code, "engine", 0, notes=(error.message,))
        runlog.append(facts.state, _ended(run_id, failed, ()))
        raise
    ended = _ended(run_id, outcome, _scan(plan, facts))
    runlog.append(facts.state, ended)
    return ended


def _engine(
    plan: Plan, facts: Facts, run_id: str, secrets: dict[str, str], tty: bool, observer: Observer
) -> Outcome:
    if plan.engine == "docker":
        from bawn.effects import docker

        return docker.run(plan, facts, run_id, tty=tty, secrets=secrets, observer=observer)
    from bawn.effects import gvisor

    return gvisor.run(plan, facts, run_id, tty=tty, secrets=secrets, observer=observer)


def _make_write_roots(plan: Plan) -> None:
    """The write roots that the policy says to create, owned by the invoking user.

    Walked from the top without following a link: where root acts for somebody, that somebody could
    put one in the way. Raises HostError.
    """
    for path in plan.creates:
        *above, name = path.strip("/").split("/")
        open_here: list[int] = []

        def enter(part: str, found: list[int] = open_here) -> None:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            found.append(os.open(part, flags, dir_fd=found[-1] if found else None))

        try:
            enter("/")
            for part in above:
                enter(part)
            os.mkdir(name, 0o755, dir_fd=open_here[-1])
            enter(name)
            os.fchown(open_here[-1], plan.identity.host_uid, plan.identity.host_gid)
        except OSError as error:
            raise HostError(f"cannot make the write root {path}: {error.strerror}") from None
        finally:
            for fd in open_here:
                os.close(fd)


def _scan(plan: Plan, facts: Facts) -> tuple[str, ...]:
    """Host-executed files that the run made (DESIGN 3): the trees before, and again now."""
    if not plan.scan:
        return ()
    from bawn.facts import tree
    from bawn.plan.scan import after_run_scan

    new: list[str] = []
    for source in plan.scan:
        before, after = tree.again(facts.trees, source)
        new += after_run_scan(before, after, plan.host_exec)
    return tuple(new)


def _ended(run_id: str, outcome: Outcome, new: tuple[str, ...]) -> Ended:
    return Ended(
        run_id, runlog.utc_now(), outcome.exit, outcome.reason, outcome.duration_ms,
        outcome.peak_memory, outcome.limits_hit, new, outcome.notes,
    )  # fmt: skip


REFUSED = ("mask", "wall")  # bawn ended the run by itself: said to a quiet caller too
_REASONS = {
    "timeout": "ended: the time limit was reached",
    "memory": "ended: the memory limit was reached",
    "pids": "ended: the process limit was reached",
    "mask": "ended: a masked name appeared on the host",
    "wall": "ended: the wall does not hold any more",
}


def describe(ended: Ended) -> list[str]:
    """What a person should read after a run: nothing after a plain exit."""
    lines = [_REASONS[ended.reason]] if ended.reason in _REASONS else []
    lines += [f"left by the run, look before you use it: {p}" for p in ended.new_host_exec]
    return [*lines, *ended.notes]
