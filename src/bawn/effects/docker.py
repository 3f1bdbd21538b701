"""Engine docker: a plan becomes `docker run` with the runsc runtime.

The client is the child and has bawn's stdio. As soon as the container exists (it takes runsc some
200 ms more to start its command), `docker inspect` is compared with the plan, both ways; a
difference ends it. Limits hit are read from the container's own control groups while it lives.
"""

import os
import signal
import time

from bawn.effects import docker_api, gvisor, process, rootfs
from bawn.effects.docker_cgroup import Gauge
from bawn.effects.names import container_of, run_paths
from bawn.effects.outcome import CANNOT_RUN, TIMEOUT, Outcome
from bawn.effects.watch import Watch
from bawn.errors import EngineError
from bawn.evidence.events import Observer
from bawn.facts.model import DockerFact, Facts
from bawn.plan.docker import Files, docker_argv
from bawn.plan.inspect import compare
from bawn.plan.model import Plan

TICK = 0.05  # seconds between two looks at the container
GRACE = 1.0  # seconds from the polite end to the final one


def run(
    plan: Plan, facts: Facts, run_id: str, *, tty: bool, secrets: dict[str, str], observer: Observer
) -> Outcome:
    """Runs the plan to its end. Raises EngineError when the container is not as planned."""
    docker = facts.docker
    assert docker is not None, "the caller refuses a docker plan without its facts"
    paths, name = run_paths(facts.runtime, run_id), container_of(run_id)
    lock = gvisor.open_run(paths)
    try:
        seed = paths.seed if gvisor.write_seed(plan, paths.seed) else ""
        gvisor.write(paths.empty, b"", 0o444)
        files = Files(rootfs.program(facts.runtime), paths.empty, seed)
        argv = [docker.cli, *docker_argv(plan, name, files, tty=tty)]
        with Watch(plan.guards) as watch:
            run = _Run(plan, docker, name, files, watch)
            return run.supervise(argv, {**process.tool_environment(), **secrets}, tty)
    finally:
        docker_api.remove(docker, name)
        gvisor.close_run(paths, lock)


class _Run:
    """One `docker run` from its start to its end."""

    def __init__(self, plan: Plan, docker: DockerFact, name: str, files: Files, watch: Watch) -> None:
        self._plan, self._docker, self._name, self._files = plan, docker, name, files
        self._watch = watch
        self._gauge: Gauge | None = None
        self._compared = False
        self._reason = "exit"
        self._notes: tuple[str, ...] = ()

    def supervise(self, argv: list[str], env: dict[str, str], tty: bool) -> Outcome:
        watched = set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
        started = time.monotonic()
        try:
            child = process.spawn(argv, env)
            status = self._wait(child, watched, started + self._plan.limit("time").value)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return self._outcome(status, int((time.monotonic() - started) * 1000))

    def _wait(self, child: int, watched: set[signal.Signals], deadline: float) -> int:
        while True:
            info = signal.sigtimedwait(watched, TICK)
            if info is None or info.si_signo == signal.SIGCHLD:
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    return os.waitstatus_to_exitcode(status)
                self._look(child)
                if time.monotonic() >= deadline:
                    polite = self._reason == "exit"
                    self._end(child, "timeout", signal.SIGTERM if polite else signal.SIGKILL)
                    deadline = time.monotonic() + GRACE
            elif info.si_code != 128:  # SI_KERNEL: the terminal sent it to the client as well
                os.kill(child, info.si_signo)

    def _look(self, child: int) -> None:
        if self._gauge:
            self._gauge.sample()
        elif self._reason == "exit":
            self._first_look(child)
        hit = self._watch.hit()
        if hit and self._reason == "exit":
            self._notes = (f"a masked name appeared on the host: {hit}",)
            self._end(child, "mask", signal.SIGKILL)

    def _first_look(self, child: int) -> None:
        made = docker_api.inspect(self._docker, self._name)
        if made is None:
            return
        if not self._compared:
            self._compared = True
            wrong = compare(self._plan, self._name, self._files, made)
            if wrong:
                self._notes = tuple(d.describe() for d in wrong)
                self._end(child, "engine", signal.SIGKILL)
                return
        state = made.get("State") or {}
        if state.get("Running") and state.get("Pid"):
            self._gauge = Gauge(int(state["Pid"]))

    def _end(self, child: int, reason: str, number: int) -> None:
        """Through the daemon: the client's own death would leave the container running."""
        self._reason = reason if self._reason == "exit" else self._reason
        word = signal.Signals(number).name
        answer = process.run([self._docker.cli, "kill", "--signal", word, self._name], timeout=10)
        if answer.code != 0 and number == signal.SIGKILL:
            docker_api.remove(self._docker, self._name)

    def _outcome(self, status: int, duration: int) -> Outcome:
        if self._reason == "engine":
            raise EngineError(
                "docker did not make the container as planned; it was ended:\n  " + "\n  ".join(self._notes)
            )
        if not self._compared and status == CANNOT_RUN:
            raise EngineError("docker could not start the container (see above)", "bawn doctor")
        if not self._compared:
            raise EngineError("the container ended before it could be compared with the plan")
        peak, hit = self._gauge.result() if self._gauge else (-1, ())
        if self._reason == "timeout":
            return Outcome(TIMEOUT, "timeout", duration, peak, (*hit, "time"))
        if self._reason == "mask":
            return Outcome(CANNOT_RUN, "mask", duration, peak, hit, self._notes)
        if hit and status >= 125:
            return Outcome(137, hit[0], duration, peak, hit)
        reason = "signal" if status > 128 else "exit"
        return Outcome(status, reason, duration, peak, hit)
