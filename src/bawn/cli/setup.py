"""`bawn setup docker`: registers runsc with dockerd; shows, applies, verifies, undoes."""

import argparse
import difflib
import os
import sys
import time

from bawn import box
from bawn.effects import process, setup_docker
from bawn.errors import HostError, UsageError
from bawn.facts import dirs, docker, host, runsc

HELP = "Register the runsc runtime in docker's daemon.json. Without --apply it only shows."
_WAIT = 60.0  # seconds for a daemon to come back
_ENDING = "docker goes on as before until it is told: --reload keeps containers running, --restart ends them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["docker"])
    parser.add_argument("--apply", action="store_true", help="write it, keeping the old copy")
    parser.add_argument("--reload", action="store_true", help="then tell docker, and run a box")
    parser.add_argument("--restart", action="store_true", help="the same by a restart of docker")
    parser.add_argument("--restart-command", default="", help="instead of the one for this system")
    parser.add_argument("--undo", action="store_true", help="put the exact old state back")
    parser.add_argument("--force", action="store_true", help="undo although the file has changed")
    parser.add_argument("--config", default=setup_docker.CONFIG, help="docker's daemon.json")
    parser.add_argument("--directory", default=setup_docker.DIRECTORY, help="where the runtime program goes")


def run(args: argparse.Namespace) -> int:
    """0 in force (or undone); 1 not applied."""
    if args.reload and args.restart:
        raise UsageError("--reload or --restart, not both")
    where = dirs.observe()
    if args.undo:
        return _undo(args, where.state)
    fact = runsc.observe(process.run, f"{where.runtime}/runsc.json", host.observe())
    if not fact.usable:
        raise HostError(fact.problem, fact.fix)
    remedy = runsc.mistakes_netns(process.run, fact.version)
    setup = setup_docker.prepare(args.config, args.directory, fact.path, remedy, _python())
    if not setup.changes:
        print(f"{setup.config} registers runsc already")
        if args.reload or args.restart:
            _tell_docker(args, setup.program)
            _run_a_box()
            print("a box runs under docker")
        return 0
    print(_diff(setup))
    if not args.apply:
        print("nothing was changed; bawn setup docker --apply --reload (or --restart) does it")
        return 1
    told = args.reload or args.restart

    def verify() -> None:
        if told:
            _tell_docker(args, setup.program)
            _run_a_box()

    def settle() -> None:
        if told:
            _tell_docker(args, None)

    done = setup_docker.apply(setup, where.state, verify, settle)
    print(f"{setup.config}: {done}" + (" and verified: a box ran under docker" if told else f"; {_ENDING}"))
    return 0


def _undo(args: argparse.Namespace, state: str) -> int:
    done = setup_docker.undo(args.config, state, args.force)
    told = args.reload or args.restart
    if told:
        _tell_docker(args, None)
    print(f"{args.config}: {done}" + ("" if told or done == "nothing to undo" else f"; {_ENDING}"))
    return 0


def _python() -> str:
    """The interpreter for docker's side: the system's, which no user can change, else bawn's own."""
    system = "/usr/bin/python3"
    return system if not setup_docker.writable_by_others(system) else os.path.realpath(sys.executable)


def _diff(setup: setup_docker.Setup) -> str:
    old = (setup.edit.old or "").splitlines()
    lines = list(difflib.unified_diff(old, setup.edit.new.splitlines(), setup.config, "after", lineterm=""))
    lines += [f"+++ {path} ({len(content)} bytes)" for path, content in setup.files]
    lines += [f"+{line}" for line in setup.files[0][1].decode().splitlines()]
    return "\n".join(lines)


def _tell_docker(args: argparse.Namespace, program: str | None) -> None:
    """Makes dockerd read its file again, and waits until its runtime runsc is `program`, or whatever
    it was where None. Raises HostError."""
    argv = _command(args)
    answer = process.run(argv, timeout=120)
    if answer.code != 0:
        raise HostError(f"{' '.join(argv)} failed: {answer.complaint}")
    until = time.monotonic() + _WAIT
    while True:
        fact = docker.observe(process.run, wait=max(0.0, until - time.monotonic()))
        if fact.problem:
            raise HostError(fact.problem, fact.fix)
        if program is None or any(r.name == "runsc" and r.path == program for r in fact.runtimes):
            return
        if time.monotonic() >= until:
            raise HostError(f"docker does not know the runtime {program}", "look at docker's log")
        time.sleep(0.2)


def _command(args: argparse.Namespace) -> list[str]:
    if args.restart_command:
        return ["/bin/sh", "-c", args.restart_command]
    if os.path.isdir("/run/systemd/system"):
        return ["systemctl", "reload" if args.reload else "restart", "docker"]
    if args.reload:
        return ["/bin/sh", "-c", "kill -HUP $(cat /run/docker.pid)"]
    return ["service", "docker", "restart"]


def _run_a_box() -> None:
    """The proof of the setup: an image of nothing but PID 1, run under runsc, that says it is
    gVisor (it ends with 125 where it is not). Raises HostError."""
    import io
    import tarfile

    image = f"bawn-verify-{os.getpid()}"
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(box.INIT, "init")
    made = process.run(["docker", "import", "-", image], timeout=60, input=archive.getvalue())
    if made.code != 0:
        raise HostError(f"docker import failed: {made.complaint}")
    try:
        answer = process.run(
            ["docker", "run", "--rm", "--runtime", "runsc", "--network", "none", "--read-only",
             "--user", "1000:1000", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
             "--memory", "256m", "--pids-limit", "128", image, "/init", "--", "/init"],
            timeout=120,
        )  # fmt: skip
        # The inner init has no command: it says how it is used and ends with 125, as does a kernel
        # that is not gVisor's; the text tells them apart.
        if b"usage: init" not in answer.err:
            raise HostError(f"a box under docker does not start: {answer.complaint}")
    finally:
        process.run(["docker", "rmi", "--force", image], timeout=60)
