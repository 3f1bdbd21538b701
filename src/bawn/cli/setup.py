"""`bawn setup docker`: registers runsc with dockerd; shows, applies, verifies, undoes."""

import argparse
import difflib
import os

from bawn import box
from bawn.effects import process, setup_docker
from bawn.errors import HostError
from bawn.facts import dirs, docker, host, runsc

HELP = "Register the runsc runtime in docker's daemon.json. Without --apply it only shows."
_VERIFY_IMAGE = "bawn-verify"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["docker"])
    parser.add_argument("--apply", action="store_true", help="write it, keeping the old copy")
    parser.add_argument("--restart", action="store_true", help="restart docker and run a box")
    parser.add_argument("--restart-command", default="", help="instead of the one for this system")
    parser.add_argument("--undo", action="store_true", help="put the exact old state back")
    parser.add_argument("--force", action="store_true", help="undo although the file has changed")
    parser.add_argument("--config", default=setup_docker.CONFIG, help="docker's daemon.json")
    parser.add_argument("--directory", default=setup_docker.DIRECTORY, help="where the runtime program goes")


def run(args: argparse.Namespace) -> int:
    """0 in force (or undone); 1 not applied."""
    where = dirs.observe()
    if args.undo:
        print(f"{args.config}: {setup_docker.undo(args.config, where.state, args.force)}")
        if args.restart:
            _restart(args.restart_command)
        return 0
    machine = host.observe()
    fact = runsc.observe(process.run, f"{where.runtime}/runsc.json", machine)
    if fact.problem:
        raise HostError(fact.problem, fact.fix)
    remedy = runsc.mistakes_netns(process.run, fact.version)
    setup = setup_docker.prepare(args.config, args.directory, fact.path, remedy)
    if not setup.edit.changes:
        print(f"{setup.config} registers runsc already")
        return 0
    print(_diff(setup))
    if not args.apply:
        print("nothing was changed; bawn setup docker --apply [--restart] does it")
        return 1

    def verify() -> None:
        if args.restart:
            _restart(args.restart_command)
            _run_a_box()

    print(f"{setup.config}: {setup_docker.apply(setup, where.state, verify)}"
          + ("" if args.restart else "; docker knows it after a restart: add --restart"))  # fmt: skip
    return 0


def _diff(setup: setup_docker.Setup) -> str:
    old = (setup.edit.old or "").splitlines()
    lines = list(difflib.unified_diff(old, setup.edit.new.splitlines(), setup.config, "after", lineterm=""))
    lines += [f"+++ {path} ({len(content)} bytes)" for path, content in setup.files]
    lines += [f"+{line}" for line in setup.files[0][1].decode().splitlines()]
    return "\n".join(lines)


def _restart(command: str) -> None:
    """Restarts dockerd with the command given, systemd's or the init script's. Raises HostError."""
    if command:
        argv = ["/bin/sh", "-c", command]
    elif os.path.isdir("/run/systemd/system"):
        argv = ["systemctl", "restart", "docker"]
    else:
        argv = ["service", "docker", "restart"]
    answer = process.run(argv, timeout=120)
    if answer.code != 0:
        raise HostError(f"{' '.join(argv)} failed: {answer.complaint}")
    fact = docker.observe(process.run, wait=60)
    if fact.problem:
        raise HostError(fact.problem, fact.fix)


def _run_a_box() -> None:
    """The proof of the setup: an image of nothing but PID 1, run under runsc, that says it is
    gVisor (it ends with 125 where it is not). Raises HostError."""
    import io
    import tarfile

    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(box.INIT, "init")
    made = process.run(["docker", "import", "-", _VERIFY_IMAGE], timeout=60,
                       input=archive.getvalue())  # fmt: skip
    if made.code != 0:
        raise HostError(f"docker import failed: {made.complaint}")
    try:
        answer = process.run(
            ["docker", "run", "--rm", "--runtime", "runsc", "--network", "none", _VERIFY_IMAGE,
             "/init", "--", "/init", "--", "/init"],
            timeout=120,
        )  # fmt: skip
        # The innermost init has no command: it says how it is used and ends with 125, as does a
        # kernel that is not gVisor's; the text tells them apart.
        if b"usage: init" not in answer.err:
            raise HostError(f"a box under docker does not start: {answer.complaint}")
    finally:
        process.run(["docker", "rmi", "--force", _VERIFY_IMAGE], timeout=60)
