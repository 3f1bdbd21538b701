"""Engine docker: a plan becomes `docker run` with the runsc runtime.

    files (undo: the run directory) -> guardian -> docker run -> compare -> the word to begin

The client is the child and has bawn's stdio. PID 1 waits: only when `docker inspect` has been
compared with the plan, both ways, bawn gives it the word, while runsc still starts (comparing
between `docker create` and `docker start` costs a second client, 10 to 40 ms). Limits hit are read from the
container's own control groups while it lives; what the kernel killed for memory ends the run.
"""

import os
import select
import signal
import time

from bawn.effects import docker_api, gvisor, process, rootfs
from bawn.effects.docker_cgroup import Gauge
from bawn.effects.docker_files import client, prepare_files
from bawn.effects.names import RunPaths, container_of, run_paths
from bawn.effects.no_way import NoWay
from bawn.effects.outcome import CANNOT_RUN, TIMEOUT, Outcome
from bawn.effects.signals import Caught, Signals
from bawn.effects.terminal import Terminal
from bawn.effects.watch import Watch
from bawn.errors import BawnError, EngineError, HostError
from bawn.evidence.events import Observer
from bawn.facts.model import DockerFact, Facts
from bawn.plan.docker import GO, OWN, Files, docker_argv
from bawn.plan.inspect import compare
from bawn.plan.model import Plan
from bawn.plan.runtime_args import faults

GRACE = 1.0  # seconds between the polite and the final end, at a time-out
HANGUP_GRACE = 10.0  # the same where a person or a supervisor sent SIGTERM or SIGHUP
KILL = 2.0  # seconds for docker to pass the final signal on: runsc waits for a Sentry that hangs
LOOK = 0.5  # seconds between two looks at what the kernel has killed (sampler.py says why)
LAST = 5.0  # seconds for docker to end what it was told to kill
_APPEARED = "a masked name appeared on the host: "
_NOT_PLANNED = "docker did not make the container as planned; it was ended before its command began:\n  "
_ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


def run(
    plan: Plan, facts: Facts, run_id: str, *, tty: bool, secrets: dict[str, str], observer: Observer
) -> Outcome:
    """Runs the plan to its end. Raises HostError or EngineError when the container could not be
    started or is not as planned; nothing is left then."""
    docker = facts.docker
    assert docker is not None, "the caller refuses a docker plan without its facts"
    socket, image_env = ready(docker, plan)
    paths, name = run_paths(facts.runtime, run_id), container_of(run_id)
    known = frozenset(f.path for tree in facts.trees for f in tree.finds if f.kind == "mask")
    lock = gvisor.open_run(paths)
    clean = True
    try:
        gvisor.write(paths.docker, f"{socket}\n".encode(), 0o600)  # so `sweep` knows the engine
        with _way_of(plan, facts, paths, run_id, socket) as way:
            files = prepare_files(plan, paths, rootfs.program(facts.runtime), secrets, way)
            words, env = client(docker, paths)
            undo = process.Guardian([*words, "rm", "--force", name], env)
            with undo, Watch(plan.guards, known) as watch, docker_api.Events(socket, name) as events:
                box = _Box(plan, socket, name, files, image_env, watch, events, paths.docker, tty, way)
                try:
                    ended = box.run([*words, *docker_argv(plan, name, files, tty=tty)], {**env, **secrets})
                finally:
                    clean = box.clean(observer)
        return ended._replace(notes=(*ended.notes, *way.notes))
    finally:
        if clean:
            gvisor.close_run(paths, lock)
        else:
            os.close(lock)  # `sweep` finds the run by its directory and tries again


def _way_of(plan: Plan, facts: Facts, paths: RunPaths, run_id: str, socket: str) -> NoWay:
    if plan.egress.mode != "bridge":
        return gvisor.way_of(plan, facts, paths, run_id)
    from bawn.effects.bridge import Bridge

    return Bridge(plan, facts, paths, run_id, socket)


def ready(docker: DockerFact, plan: Plan) -> tuple[str, tuple[str, ...]]:
    """(the daemon's socket, the variables of the image), or a refusal (HostError, EngineError)."""
    if docker.problem:
        raise EngineError(docker.problem, docker.fix)
    for fault in faults(docker):
        if fault.severity == "error":
            raise EngineError(fault.text, fault.fix)
    socket = docker.endpoint.removeprefix("unix://")
    image = docker_api.image(socket, plan.image)
    if image is None:
        raise EngineError(f"docker has no image {plan.image!r}", f"docker pull {plan.image}")
    layers = (image.get("RootFS") or {}).get("Layers")
    if plan.image_digest and layers != [plan.image_digest]:
        raise EngineError(
            f"docker's image {plan.image} is not the one that bawn keeps by that name ({plan.image_digest})",
            f"bawn image load {plan.image}, or bawn image rm {plan.image}",
        )
    config = image.get("Config") or {}
    if config.get("Volumes"):
        raise EngineError(
            f"the image {plan.image!r} makes volumes of its own: {', '.join(sorted(config['Volumes']))}",
            "build it without VOLUME: what is written there is in no plan",
        )
    return socket, tuple(config.get("Env") or ())


class _Box:
    """One `docker run` from its start to its end."""

    def __init__(
        self, plan: Plan, socket: str, name: str, files: Files, image_env: tuple[str, ...],
        watch: Watch, events: docker_api.Events, record: str, tty: bool, way: NoWay,
    ) -> None:  # fmt: skip
        self._plan, self._socket, self._name, self._files = plan, socket, name, files
        self._image_env, self._watch, self._events = image_env, watch, events
        self._record, self._tty, self._way = record, tty, way
        self._id = ""
        self._running = False  # PID 1 has been started
        self._exit = -1  # the container's own exit status, once it has one
        self._gone = False  # the daemon has removed it
        self._cut = False  # bawn killed the client: the daemon may still do what it had asked for
        self._oom = False
        self._early = False  # a signal ended it before its command began
        self._gauge: Gauge | None = None
        self._reason, self._signal = "exit", 0
        self._notes: tuple[str, ...] = ()
        self._deadline = 0.0
        self._steps = [signal.SIGTERM, signal.SIGKILL]  # what is left to try at a deadline
        self._child = -1
        self._poller = select.poll()

    def run(self, argv: list[str], env: dict[str, str]) -> Outcome:
        """Starts the client and sees the container to its end."""
        if hit := self._watch.hit():
            return Outcome(CANNOT_RUN, "mask", 0, notes=(_APPEARED + hit,))
        started = time.monotonic()
        self._deadline = started + self._plan.limit("time").value
        with Terminal(self._tty), Signals() as signals:
            self._child = process.spawn(argv, env)
            try:
                status = self._supervise(signals)
            except BaseException:
                self._kill_client()
                os.waitpid(self._child, 0)
                raise
        return self._outcome(status, int((time.monotonic() - started) * 1000))

    def _supervise(self, signals: Signals) -> int:
        """Waits for everything that can happen; the client's exit status (negative: its signal)."""
        for source in (signals, self._events, self._watch):
            if source.fileno() >= 0:
                self._poller.register(source.fileno(), select.POLLIN)
        while True:
            left = min(LOOK, max(0.0, self._deadline - time.monotonic()))
            ready = {fd for fd, _ in self._poller.poll(left * 1000 + 1)}
            if self._reason != "mask" and (hit := self._watch.hit()):
                self._notes = (_APPEARED + hit,)
                self._end("mask", signal.SIGKILL)
            if self._gauge and not ready:
                self._gauge.sample()
            if self._reason == "exit" and self._killed():
                self._end("memory", signal.SIGKILL)
            if self._reason == "exit" and (why := self._way.broken()):
                self._notes = (why,)
                self._end("wall", signal.SIGKILL)
            if self._gauge and self._gauge.fd in ready:
                self._gauge.sample()
                self._poller.unregister(self._gauge.fd)
                self._gauge.close()
            if self._events.fileno() in ready:
                for event in self._events.read():
                    self._happened(event)
                if not self._events.open:
                    self._poller.unregister(self._events.fileno())
            for caught in signals.read():
                if caught.number != signal.SIGCHLD:
                    self._caught(caught)
                    continue
                done, status = os.waitpid(self._child, os.WNOHANG)
                if done:
                    return os.waitstatus_to_exitcode(status)
            if time.monotonic() >= self._deadline:
                self._expired()

    def _happened(self, event: docker_api.Event) -> None:
        if event.action == "create":
            self._created(event.id)
        elif event.action == "start":
            self._running = True
            self._measure()
            if self._files.network != "none" and self._reason == "exit":
                self._way.begun()
                self._go()
        elif event.action == "oom":
            self._oom = True
        elif event.action == "die":
            self._exit = event.exit
            if self._watch.fileno() >= 0:
                self._poller.unregister(self._watch.fileno())
                self._watch.close()
        elif event.action == "destroy":
            self._gone = True

    def _created(self, container: str) -> None:
        """The container exists, PID 1 does not run yet: is it the one that was planned?"""
        self._id = container
        with open(self._record, "a") as file:
            file.write(container)
        made = docker_api.inspect(self._socket, self._name)
        wrong = (
            compare(self._plan, self._name, self._files, made, self._image_env, tty=self._tty) if made else ()
        )
        if made is None or wrong:
            self._notes = tuple(d.describe() for d in wrong) or ("it has vanished",)
            self._end("engine", signal.SIGKILL)
        elif self._reason == "exit" and self._files.network == "none":
            self._go()

    def _go(self) -> None:
        """The word to begin. With a network of its own the box waits until the wall has its port."""
        gvisor.write(f"{self._files.own}{GO.removeprefix(OWN)}", b"", 0o444)

    def _measure(self) -> None:
        made = docker_api.inspect(self._socket, self._name) or {}
        pid = (made.get("State") or {}).get("Pid")
        if isinstance(pid, int) and pid > 0:
            self._gauge = Gauge(pid)
            if self._gauge.fd >= 0:
                self._poller.register(self._gauge.fd, select.POLLIN)

    def _killed(self) -> bool:
        """The kernel has killed something of the running container for memory."""
        hit = self._gauge.result()[1] if self._gauge else ()
        return self._exit < 0 and (self._oom or "memory" in hit)

    def _caught(self, caught: Caught) -> None:
        """A signal for the box. Of a terminal's the client has its own copy, and passes it on."""
        again = caught.number == self._signal == signal.SIGINT
        if again or (caught.number in _ENDING and not self._running):
            self._early = not self._running
            self._signal = caught.number
            self._end("signal", signal.SIGKILL)
            return
        if not caught.from_terminal:
            docker_api.kill(self._socket, self._name, caught.number)
        if caught.number in _ENDING:
            self._signal = caught.number
        if caught.number in (signal.SIGTERM, signal.SIGHUP):
            self._deadline = min(self._deadline, time.monotonic() + HANGUP_GRACE)
            self._reason = "signal" if self._reason == "exit" else self._reason
            self._steps = [signal.SIGKILL]

    def _expired(self) -> None:
        """The time is over, or what was told to end has not ended."""
        if self._steps:
            self._end("timeout", self._steps[0])
        else:
            self._kill_client()
            self._deadline = time.monotonic() + LAST

    def _end(self, reason: str, number: signal.Signals) -> None:
        """Through the daemon: the client's own death would leave the container running. The client
        alone where there is nothing running yet; `clean` removes what it may have made."""
        self._reason = reason if self._reason == "exit" else self._reason
        self._steps = self._steps[self._steps.index(number) + 1 :] if number in self._steps else []
        self._deadline = time.monotonic() + (GRACE if number == signal.SIGTERM else LAST)
        try:
            sent = docker_api.kill(self._socket, self._name, number, KILL)
        except HostError:  # late: the kernel is asked itself
            sent = number != signal.SIGKILL
        if not sent and self._running:
            docker_api.end_leftovers(self._id)
        elif not sent:
            self._kill_client()

    def _kill_client(self) -> None:
        self._cut = True
        os.kill(self._child, signal.SIGKILL)

    def clean(self, observer: Observer) -> bool:
        """Removes the container, also one that the daemon is just about to make for a client that
        was killed, and what a failed start left running. False where the daemon would not."""
        if self._gauge:
            self._gauge.close()
        try:
            if self._cut and not self._id:
                self._await("create")
            if not self._gone:
                docker_api.remove(self._socket, self._name)
        except BawnError as error:
            docker_api.end_leftovers(self._id)  # without its daemon too, no box outlives its bawn
            observer.warn(f"container {self._name} is not removed: {error.message}; try: bawn sweep")
            return False
        if not self._running or self._exit < 0:
            docker_api.end_leftovers(self._id)
        return True

    def _await(self, action: str) -> None:
        """Waits a second for the daemon to tell that something happened."""
        until = time.monotonic() + 1
        poller = select.poll()
        poller.register(self._events.fileno(), select.POLLIN)
        while self._events.open and (left := until - time.monotonic()) > 0:
            poller.poll(left * 1000)
            events = self._events.read()
            for event in events:
                self._id = self._id or event.id
                if event.action == "die":
                    self._exit = event.exit
                self._oom = self._oom or event.action == "oom"
                self._gone = self._gone or event.action == "destroy"
            if any(event.action == action for event in events):
                return

    def _outcome(self, status: int, duration: int) -> Outcome:
        if self._running and self._exit < 0:
            self._await("die")
        peak, hit = self._gauge.result() if self._gauge else (-1, ())
        if self._oom and "memory" not in hit:
            hit = ("memory", *hit)
        if self._reason == "engine":
            raise EngineError(_NOT_PLANNED + "\n  ".join(self._notes))
        if self._reason == "timeout":
            return Outcome(TIMEOUT, "timeout", duration, peak, (*hit, "time"))
        if self._reason in ("mask", "wall"):
            return Outcome(CANNOT_RUN, self._reason, duration, peak, hit, self._notes)
        if self._reason == "signal" and (self._exit < 0 or self._early):
            return Outcome(128 + self._signal, "signal", duration, peak, hit)
        if status < 0:
            raise EngineError(f"docker's client was ended by signal {-status}; the container was removed")
        if not self._running:
            raise EngineError("docker could not start the container (its own message stands above)",
                              "bawn doctor --engine docker")  # fmt: skip
        if self._exit < 0:
            raise EngineError("the docker daemon went away during the run", "start docker, then: bawn sweep")
        if hit and self._exit != 0:  # the kernel ended the Sentry; runsc calls that 1
            return Outcome(137, hit[0], duration, peak, hit)
        return Outcome(self._exit, "signal" if self._exit > 128 else "exit", duration, peak, hit)
