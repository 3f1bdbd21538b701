"""Engine gvisor: a plan becomes a box by runsc itself, without a daemon.

    files (undo: the run directory) -> cgroups -> launch.c -> runsc -> init.c -> the command

Everything of a run lies in one directory named by the run id, with a lock that this process holds:
when bawn dies, the kernel ends the box (launch.c), the lock is free, and `sweep` knows.
"""

import json
import os
import signal
import time

from bawn import box
from bawn.effects import cgroup, process, rootfs
from bawn.effects.names import RunPaths, cgroup_of, run_paths
from bawn.effects.no_way import NoWay
from bawn.effects.outcome import TIMEOUT, Outcome
from bawn.effects.remove import remove_tree
from bawn.effects.sampler import Sampler
from bawn.effects.stdio import Stdio
from bawn.effects.terminal import Terminal
from bawn.errors import EngineError, HostError
from bawn.evidence.events import Observer
from bawn.facts.model import Facts
from bawn.plan import oci
from bawn.plan.agent import tail_of
from bawn.plan.model import Plan, Way
from bawn.typed import Any

GRACE = 1.0  # seconds between the polite and the final end, at a time-out
HANGUP_GRACE = 10.0  # the same where a person or a supervisor sent SIGTERM or SIGHUP
NOW = signal.SIGRTMAX  # to launch.c: end the whole namespace


def run(
    plan: Plan, facts: Facts, run_id: str, *, tty: bool, secrets: dict[str, str], observer: Observer
) -> Outcome:
    """Runs the plan to its end. stdio is bawn's own.

    Raises HostError or EngineError when the box could not be started; nothing is left then.
    """
    paths = run_paths(facts.runtime, run_id)
    lock = open_run(paths)
    groups = cgroup.Cgroups(facts.host.cgroup, ())
    image = rootfs.hold(plan)
    try:
        # Before they are made: `sweep` may stand in another tree of v2, and see other groups than this run.
        made = {cgroup_of(root, run_id): None for _, root in facts.host.cgroup_roots}
        write(paths.groups, "\n".join(made).encode(errors="surrogateescape"), 0o600)
        groups = cgroup.make(plan, facts.host.cgroup, facts.host.cgroup_roots, run_id)
        with way_of(plan, facts, paths, run_id) as way:
            write_files(plan, facts, paths, tty, secrets, observer, way.door)
            argv = launch_argv(plan, facts, paths, groups, run_id, tty, bool(way.door))
            started = time.monotonic()
            status, reason, peak, begun = _supervise(plan, argv, groups, tty)
            duration = int((time.monotonic() - started) * 1000)
        used = cgroup.usage(groups)
        ended = _outcome(paths, status, reason, duration, used, peak, begun)
        return ended._replace(notes=(*ended.notes, *way.notes))
    finally:
        stuck = cgroup.remove(groups)
        if image is not None:
            os.close(image)
        if stuck:
            os.close(lock)  # `sweep` finds the run by its directory and tries again
            observer.warn(f"cannot remove {' '.join(stuck)}; try: bawn sweep")
        else:
            close_run(paths, lock)


def way_of(plan: Plan, facts: Facts, paths: RunPaths, run_id: str) -> NoWay:
    """The way out that the plan gives the run; a run without one pays nothing for it."""
    if plan.egress.mode == "none":
        return NoWay()
    from bawn.effects.way import Way

    return Way(plan, facts.state, paths, run_id)


def open_run(paths: RunPaths) -> int:
    """Makes the run directory and takes its lock. 0711: a box's file server passes, none lists.

    It is made beside and renamed once the lock is held, so that `sweep` never sees it unlocked.
    """
    import fcntl

    runs, name = os.path.split(paths.directory)
    beside = f"{runs}/.{name}"
    try:
        os.makedirs(runs, mode=0o711, exist_ok=True)
        os.mkdir(beside, 0o700)
        lock = os.open(f"{beside}/lock", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.chmod(beside, 0o711)
        os.rename(beside, paths.directory)
    except OSError as error:
        raise HostError(f"cannot make {paths.directory}: {error.strerror}") from None
    return lock


def close_run(paths: RunPaths, lock: int) -> None:
    """Removes everything of the run; the lock goes last."""
    remove_tree(paths.directory)
    os.close(lock)


def write_files(
    plan: Plan, facts: Facts, paths: RunPaths, tty: bool, secrets: dict[str, str], observer: Observer,
    way: str = "",
) -> None:  # fmt: skip
    """Writes config.json, what covers masked names, the cage's records and the home seed."""
    image = plan.rootfs or rootfs.host_image(facts.runtime, plan.identity, plan.hostname, observer)
    seed = paths.seed if write_seed(plan, paths.seed, secrets) else ""
    init = rootfs.program(facts.runtime)
    out = write_way(paths, way)
    own = rootfs.assemble(paths.rootfs, image, oci.targets(plan, seed, out))
    write(paths.empty, b"", 0o444)
    os.mkdir(paths.empty_directory, 0o555)
    config = oci.bundle(
        plan,
        rootfs=paths.rootfs,
        image=own,
        empty=oci.Empty(paths.empty, paths.empty_directory),
        init=init,
        seed=seed,
        tty=tty,
        secrets=secrets,
        way=out,
    )
    records = place_binds(config["mounts"], paths.places, plan.identity.rootless)
    if not plan.identity.rootless:
        records += [f"b {paths.rootfs}", f"x {paths.rootfs}"]
    records += masks(plan, paths)
    write(paths.cage, "\0".join([*records, ""]).encode(errors="surrogateescape"), 0o600)
    write(paths.config, json.dumps(config).encode(), 0o600)


def write_way(paths: RunPaths, directory: str, address: str = "") -> Way | None:
    """What the box is shown of the way out that lies in `directory`, or is at `address`; None for none."""
    if not directory and not address:
        return None
    from bawn.plan.way import RESOLVER

    write(paths.resolver, RESOLVER.encode(), 0o444)
    return Way(paths.resolver, directory, address)


def place_binds(mounts: list[dict[str, Any]], places: str, rootless: bool) -> list[str]:
    """Gives each bind of a bundle a place of its own, from which runsc takes it; the records that
    tell launch.c to bind the host path there (launch.c says why)."""
    os.mkdir(places, 0o711)
    records = []
    for number, mount in enumerate(m for m in mounts if m["type"] == "bind"):
        source, place = mount["source"], f"{places}/{number}"
        if os.path.isdir(source):
            os.mkdir(place, 0o700)
        else:
            write(place, b"", 0o600)
        own = mount["destination"] == oci.INIT and not rootless
        mode = "w" if "rw" in mount["options"] else "x" if own else "o"
        records += [f"b {source}", f"{mode} {place}"]
        mount["source"] = place
    return records


def masks(plan: Plan, paths: RunPaths) -> list[str]:
    """The late masks as launch.c reads them."""
    if not plan.guards:
        return []
    records = [f"k {paths.empty}", f"k {paths.empty_directory}"]
    for guard in plan.guards:
        records.append(f"r {guard.root}")
        records += [f"{'p' if '/' in p else 'n'} {p}" for p in guard.patterns]
    return records


def write(path: str, data: bytes, mode: int) -> None:
    """Makes a new file. Raises HostError."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            os.fchmod(fd, mode)
            os.write(fd, data)
        finally:
            os.close(fd)
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}") from None


def write_seed(plan: Plan, seed: str, secrets: dict[str, str]) -> bool:
    """Fills the seed: credentials that the policy names, and the agent's settings."""
    if not plan.seed and not plan.settings:
        return False
    owner = plan.identity.host_uid, plan.identity.host_gid
    os.mkdir(seed, 0o700)
    tails = {tail_of(name): json.dumps(value.strip()[-20:])[1:-1] for name, value in secrets.items()}
    files = []
    for name, text in plan.settings:
        for mark, tail in tails.items():
            text = text.replace(mark, tail)
        files.append((name, text.encode()))
    files += [(name, read_credential(source)) for name, source in plan.seed]
    for name, data in files:
        directory = seed
        for part in name.split("/")[:-1]:
            directory += f"/{part}"
            os.makedirs(directory, 0o700, exist_ok=True)
            os.chown(directory, *owner)
        write(f"{seed}/{name}", data, 0o600)
        os.chown(f"{seed}/{name}", *owner)
    os.chown(seed, *owner)
    return True


def read_credential(path: str) -> bytes:
    """A named credential file: regular, no link, at most 1 MiB. Raises HostError."""
    import stat

    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise HostError(f"cannot read the credential file {path}: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise HostError(f"the credential file {path} is not a regular file")
        data = os.read(fd, (1 << 20) + 1)
    finally:
        os.close(fd)
    if len(data) > 1 << 20:
        raise HostError(f"the credential file {path} is larger than 1 MiB")
    return data


def launch_argv(
    plan: Plan, facts: Facts, paths: RunPaths, groups: cgroup.Cgroups, run_id: str, tty: bool,
    way: bool = False,
) -> list[str]:  # fmt: skip
    """The argv of the cage and of runsc in it. It holds no secret."""
    joined = [word for path in groups.procs for word in ("-c", path)]
    user = ["-u", f"{facts.host.uid}:{facts.host.gid}"] if plan.identity.rootless else []
    late = ["-m", paths.cage, *(["-t"] if tty else [])]
    runsc = [facts.runsc.path, f"--root={paths.state}", f"--log={paths.log}", "--log-format=json"]
    late += ["-t"] if tty else []
    return [
        box.LAUNCH, *joined, *user, *late, "--",
        *runsc, *oci.flags(plan, way),
        "run", *(f"--pass-fd={fd}:{fd}" for fd in (oci.CONTROL, oci.REPORT)),
        f"--bundle={paths.directory}", run_id,
    ]  # fmt: skip


def _supervise(plan: Plan, argv: list[str], groups: cgroup.Cgroups, tty: bool) -> tuple[int, str, int, bool]:
    """Starts the cage and waits for its end; (exit status, reason, sampled peak in bytes, whether the
    command began)."""
    # Blocked before the start, so that none is lost between start and wait.
    watched = set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    affinity = _pin(plan)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    try:
        with Terminal(tty), Stdio() as stdio:
            files = {**stdio.files, oci.REPORT: writer}
            child = process.spawn(argv, process.tool_environment(), files, group=not tty)
            stdio.started()
            _unpin(affinity)
            ended = _wait(plan, child, groups, watched, tty)
        try:
            return *ended, os.read(reader, 1) == b"s"
        except BlockingIOError:
            return *ended, False
    finally:
        os.close(reader)
        os.close(writer)
        _unpin(affinity)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait(
    plan: Plan, child: int, groups: cgroup.Cgroups, watched: set[signal.Signals], tty: bool
) -> tuple[int, str, int]:
    """Passes signals on, keeps the limits that only bawn can, and reaps."""
    sampler = Sampler(child, plan.limit("memory"), groups)
    deadline = time.monotonic() + plan.limit("time").value
    reason = "exit"
    while True:
        wait = max(0.0, deadline - time.monotonic())
        info = signal.sigtimedwait(watched, min(wait, sampler.interval))
        if info is None or info.si_signo == signal.SIGCHLD:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status), reason, sampler.peak
            if info is None and reason == "exit" and sampler.over():
                reason = "memory"
                os.kill(child, NOW)
            elif info is None and time.monotonic() >= deadline:
                os.kill(child, NOW if reason != "exit" else signal.SIGTERM)
                deadline = time.monotonic() + GRACE
                reason = "timeout" if reason == "exit" else reason
            continue
        if tty and info.si_code == 128:  # SI_KERNEL: the terminal sent it to the box as well
            continue
        os.kill(child, info.si_signo)
        if info.si_signo in (signal.SIGTERM, signal.SIGHUP) and reason == "exit":
            reason = "signal"
            deadline = min(deadline, time.monotonic() + HANGUP_GRACE)


def _pin(plan: Plan) -> set[int] | None:
    """CPU affinity where no cgroup bounds the CPU; inherited by the child. The old set, or None."""
    limit = plan.limit("cpus")
    if limit.by != "affinity":
        return None
    allowed = os.sched_getaffinity(0)
    wanted = min(len(allowed), -(-limit.value // 1000))
    order = sorted(allowed)
    first = os.getpid() % len(order)  # so that several boxes do not crowd the same processors
    os.sched_setaffinity(0, [order[(first + i) % len(order)] for i in range(wanted)])
    return allowed


def _unpin(allowed: set[int] | None) -> None:
    if allowed is not None:
        os.sched_setaffinity(0, allowed)


def _outcome(
    paths: RunPaths, status: int, reason: str, duration: int, used: cgroup.Usage, sampled: int, begun: bool
) -> Outcome:
    """Judges the end: a limit's kill is told apart from the command's own exit, and both from a box
    that never began."""
    hit: tuple[str, ...] = ("memory",) if used.oom_kills or reason == "memory" else ()
    hit += ("pids",) if used.pids_refused else ()
    peak = max(used.peak_memory, sampled)
    if reason == "timeout":
        return Outcome(TIMEOUT, reason, duration, peak, (*hit, "time"))
    if hit and status != 0:  # the kernel ends the Sentry; runsc calls that 1
        return Outcome(137, hit[0], duration, peak, hit)
    if not begun and reason == "exit":
        raise EngineError(_complaint(paths.log), "bawn doctor")
    if status > 128:
        reason = "signal"
    return Outcome(status, reason, duration, peak, hit)


def _complaint(log: str) -> str:
    """runsc's own last error."""
    said = ""
    try:
        with open(log, errors="replace") as file:
            for line in file:
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue
                if entry.get("level") in ("error", "warning"):
                    said = str(entry.get("msg", ""))
    except OSError:
        pass
    return f"runsc did not start the box: {said or 'it left no message'}"
