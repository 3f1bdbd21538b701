"""The one place that starts programs.

Two ways. `run` is for tools that answer: total deadline, both pipes drained at once, output capped,
null stdin unless given, an explicit environment. `spawn` is for the box itself: stdio inherited, no
signal blocked, and nothing imported (`subprocess` costs 6 ms, more than the call it would make).
"""

import os
from collections.abc import Mapping, Sequence

from bawn.errors import HostError
from bawn.typed import NamedTuple

# What a tool needs to work and to answer in the language its parser was written for.
_KEEP = ("PATH", "HOME", "USER", "LOGNAME", "XDG_RUNTIME_DIR", "DOCKER_HOST", "DOCKER_CONTEXT",
         "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "SSH_AUTH_SOCK")  # fmt: skip


class Result(NamedTuple):
    """A finished program: its argv, exit code (negative: the signal), and captured output."""

    argv: tuple[str, ...]
    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """stdout, undecodable bytes replaced."""
        return self.out.decode(errors="replace")

    @property
    def complaint(self) -> str:
        """The last line it wrote to stderr (or stdout), for a message."""
        said = (self.err or self.out).decode(errors="replace").strip()
        return said.splitlines()[-1] if said else f"exit status {self.code}"


def tool_environment() -> dict[str, str]:
    """A minimal environment for tools, in the C locale."""
    kept = {name: os.environ[name] for name in _KEEP if name in os.environ}
    return {"PATH": os.defpath, **kept, "LC_ALL": "C"}


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    input: bytes | None = None,
    cap: int = 1 << 20,
) -> Result:
    """Runs a tool to its end. `timeout` is seconds for all of it; `cap` bytes for each stream.

    Raises HostError when the program is missing, cannot be started, does not end in time or writes
    more than `cap`; a non-zero exit status is the caller's to judge.
    """
    import selectors
    import subprocess
    import time

    line = paste(argv)
    try:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(tool_environment() if env is None else env),
        )
    except FileNotFoundError:
        raise HostError(f"{argv[0]} is not installed", f"install it, then: {line}") from None
    except OSError as error:
        raise HostError(f"{argv[0]} cannot be started: {error.strerror}", line) from None

    deadline = time.monotonic() + timeout
    assert child.stdout and child.stderr
    streams: dict[int, list[bytes]] = {child.stdout.fileno(): [], child.stderr.fileno(): []}
    try:
        with selectors.DefaultSelector() as selector:
            for stream in (child.stdout, child.stderr):
                selector.register(stream, selectors.EVENT_READ)
            if child.stdin:
                os.set_blocking(child.stdin.fileno(), False)
                selector.register(child.stdin, selectors.EVENT_WRITE)
            rest = memoryview(input or b"")
            while selector.get_map():
                for key, _ in selector.select(max(0.0, deadline - time.monotonic())):
                    if key.fileobj is child.stdin:
                        rest = _feed(key.fd, rest)
                        if not rest:
                            selector.unregister(key.fileobj)
                            child.stdin.close()
                        continue
                    data = os.read(key.fd, 65536)
                    if not data:
                        selector.unregister(key.fileobj)
                    streams[key.fd].append(data)
                    if sum(map(len, streams[key.fd])) > cap:
                        raise HostError(f"{argv[0]} wrote more than {cap} bytes", line)
                if time.monotonic() >= deadline:
                    raise HostError(f"{argv[0]} did not answer in {timeout:g} s", line)
        try:
            code = child.wait(max(0.01, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise HostError(f"{argv[0]} did not end in {timeout:g} s", line) from None
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe:
                pipe.close()
    out, err = (b"".join(parts) for parts in streams.values())
    return Result(tuple(argv), code, out, err)


def _feed(fd: int, rest: memoryview) -> memoryview:
    try:
        return rest[os.write(fd, rest) :]
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return rest[len(rest) :]


def spawn(
    argv: Sequence[str], env: Mapping[str, str], files: Mapping[int, int] | None = None, group: bool = False
) -> int:
    """Starts `argv` with bawn's own stdio and no signal blocked; the process id.

    `files` are descriptors it gets beside or instead: {its number: ours}; `group` gives it a process
    group of its own, so that a terminal's signals reach bawn alone.

    Raises HostError when it cannot be started.
    """
    # Ascending, so that a source is never overwritten before it is used (targets are the lowest).
    actions = [(os.POSIX_SPAWN_DUP2, ours, theirs) for theirs, ours in sorted((files or {}).items())]
    try:
        if group:
            return os.posix_spawn(argv[0], list(argv), env, file_actions=actions, setsigmask=(), setpgroup=0)
        return os.posix_spawn(argv[0], list(argv), env, file_actions=actions, setsigmask=())
    except OSError as error:
        raise HostError(f"{argv[0]} cannot be started: {error.strerror}", paste(argv)) from None


_GUARDIAN = 'read -r _ && exit; for _ in 1 2 3 4 5; do "$@"; sleep 1; done'


class Guardian:
    """Runs `argv`, some times over, once this process is dead, whatever killed it. A context manager:
    it is sent away at the end. In a session of its own, so that no terminal ends it."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self._argv = ["/bin/sh", "-c", _GUARDIAN, "bawn-guardian", *argv]
        self._env = dict(env)

    def __enter__(self) -> "Guardian":
        """Raises HostError when it cannot be started."""
        reader, self._writer = os.pipe()  # neither is inherited: our death closes the one writer
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        actions = [(os.POSIX_SPAWN_DUP2, reader, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (1, 2)]
        try:
            self._pid = os.posix_spawn(
                self._argv[0], self._argv, self._env, file_actions=actions, setsid=True, setsigmask=()
            )
        except OSError as error:
            os.close(self._writer)
            raise HostError(f"{self._argv[0]} cannot be started: {error.strerror}") from None
        finally:
            os.close(reader)
            os.close(null)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            os.write(self._writer, b"\n")
        except BrokenPipeError:  # somebody killed it
            return
        finally:
            os.close(self._writer)
            os.waitpid(self._pid, 0)


def paste(argv: Sequence[str]) -> str:
    """The command as a line that a person can paste. bawn never has a secret in an argv."""
    import shlex

    return shlex.join(argv)
