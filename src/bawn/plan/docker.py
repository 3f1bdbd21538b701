"""Plan -> `docker run` argv: the exact hardened contract of DESIGN 4, in its order. Pure.

What bawn adds of its own stands last before the image, so that the contract is unbroken:

    --name, --label    derived from the run id, so that an orphan can be found
    --log-driver none  the daemon would write everything the agent prints to its disk, without bound
    --no-healthcheck   an image's health check runs beside PID 1
    --pull never       a run fetches nothing
    --entrypoint       PID 1 is bawn's, whatever the image says
"""

from bawn.errors import EngineError
from bawn.plan.model import Bind, Plan, Tmpfs, Way
from bawn.plan.oci import EMPTY, INIT, init_argv
from bawn.typed import NamedTuple

LABEL = "bawn.run"
OWN = "/run/bawn"  # in the box: PID 1, the seed of the home, and the word to begin
GO = f"{OWN}/go"  # appears when the container has been compared with the plan
RESOLVER = "/etc/resolv.conf"  # docker copies the machine's own into every container


class Files(NamedTuple):
    """Where the run's own files lie on the host."""

    own: str  # the directory shown at OWN
    empty: str  # covers masked files
    seed: bool = False  # own/seed is there
    way: Way | None = None  # the one way out, where there is one
    network: str = "none"  # bridge mode: docker's network of this run alone


def docker_argv(
    plan: Plan,
    name: str,
    files: Files,
    *,
    tty: bool,
    stdin: bool = True,
    seccomp: str = "",
    add_host: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """The words after `docker`. Secrets are named here and valued in docker's environment.

    Raises EngineError for a path or an image that docker's command line cannot hold.
    """
    if not plan.image or plan.image.startswith("-"):
        raise EngineError(f"not an image: {plan.image!r}", 'image = "NAME" in the profile')
    identity = plan.identity
    memory = size_word(plan.limit("memory").value)
    files_open = plan.limit("open_files").value
    init, *arguments = command(plan, files)
    return (
        "run", "--rm",
        *(("--interactive",) if stdin or tty else ()),
        *(("--tty",) if tty else ()),
        "--runtime", "runsc",
        "--user", f"{identity.uid}:{identity.gid}",
        "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges",
        *(("--security-opt", f"seccomp={seccomp}") if seccomp else ()),
        "--read-only",
        *(word for t in plan.tmpfs for word in ("--tmpfs", tmpfs_word(t))),
        "--memory", memory, "--memory-swap", memory,
        "--cpus", cpus_word(plan.limit("cpus").value),
        "--pids-limit", str(plan.limit("pids").value),
        "--ulimit", f"nofile={files_open}:{files_open}",
        "--ipc", "private",
        "--workdir", plan.workdir,
        *(word for b in effective_binds(plan, files) for word in ("--mount", mount_word(b))),
        "--network", files.network,
        *(word for host in add_host for word in ("--add-host", host)),
        *(word for v in plan.env
          for word in ("--env", v.name if v.secret else f"{v.name}={v.value}")),
        "--name", name, "--label", f"{LABEL}={name}",
        "--log-driver", "none", "--no-healthcheck", "--pull", "never", "--entrypoint", init,
        plan.image,
        *arguments,
    )  # fmt: skip


def command(plan: Plan, files: Files) -> tuple[str, ...]:
    """PID 1 and its arguments. It waits for GO before it does anything."""
    keep = tuple(v.name for v in plan.env)
    init, *rest = init_argv(plan, "seed" if files.seed else "", keep, way=files.way)
    assert init == INIT
    return (init, "-w", GO, *rest)


def effective_binds(plan: Plan, files: Files) -> tuple[Bind, ...]:
    """The plan's binds with bawn's own files put in."""
    shown = [b._replace(source=files.empty) if b.source == EMPTY else b for b in plan.binds]
    shown.append(Bind(files.own, OWN, "ro", True, "bawn"))
    if files.way is not None:
        from bawn.plan.way import binds  # a run without a way out does not pay for it

        return (*shown, *binds(files.way))
    return (*shown, Bind(files.empty, RESOLVER, "ro", False, "bawn"))


def tmpfs_word(tmpfs: Tmpfs) -> str:
    """docker adds noexec to every --tmpfs unless told otherwise.

    Raises EngineError for a path that the option cannot hold.
    """
    _writable(tmpfs.target)
    if ":" in tmpfs.target:
        raise EngineError(
            f"docker cannot cover a directory with a colon in its name: {tmpfs.target}", "rename it"
        )
    flags = ["ro" if tmpfs.read_only else "rw", "noexec" if tmpfs.noexec else "exec", "nosuid"]
    return f"{tmpfs.target}:{','.join(flags)},size={size_word(tmpfs.size)}"


def mount_word(bind: Bind) -> str:
    """One `--mount` value: a line of CSV, as Go's encoding/csv reads it (RFC 4180)."""
    _writable(bind.source)
    _writable(bind.target)
    fields = ["type=bind", f"source={bind.source}", f"target={bind.target}"]
    fields += ["readonly"] if bind.mode == "ro" else []
    return ",".join(_field(field) for field in [*fields, "bind-propagation=rprivate"])


def _field(text: str) -> str:
    if "," in text or '"' in text:
        return '"' + text.replace('"', '""') + '"'
    return text


def _writable(path: str) -> None:
    """Raises EngineError for what does not survive docker's CSV and JSON."""
    if "\n" in path or "\r" in path:
        raise EngineError(f"docker cannot mount a path with a line end: {path!r}", "rename it")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise EngineError(f"docker cannot mount a path that is not UTF-8: {path!r}", "rename it") from None


def size_word(value: int) -> str:
    """Bytes as docker spells them, exactly: 2147483648 is "2g"."""
    for letter, unit in (("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)):
        if value % unit == 0:
            return f"{value // unit}{letter}"
    return f"{value}b"


def cpus_word(thousandths: int) -> str:
    """2000 is "2", 1500 is "1.5"."""
    whole, rest = divmod(thousandths, 1000)
    return f"{whole}.{rest:03d}".rstrip("0").rstrip(".")
