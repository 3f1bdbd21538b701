"""Plan -> `docker run` argv: the exact hardened contract of DESIGN 4, in its order. Pure.

bawn's own `--name` and `--label` come last before the image, so that the contract stands unbroken.
"""

import csv
import io

from bawn.errors import EngineError
from bawn.plan.model import Bind, Plan, Tmpfs
from bawn.plan.oci import EMPTY, INIT, SEED, init_argv
from bawn.typed import NamedTuple

LABEL = "bawn.run"


class Files(NamedTuple):
    """Where the run's own files lie on the host; `seed` is "" where there is none."""

    init: str
    empty: str
    seed: str


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

    Raises EngineError for a path that cannot be written in `--mount`.
    """
    identity = plan.identity
    memory = size_word(plan.limit("memory").value)
    files_open = plan.limit("open_files").value
    mounts = effective_binds(plan, files)
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
        *(word for b in mounts for word in ("--mount", mount_word(b))),
        "--network", "none",
        *(word for host in add_host for word in ("--add-host", host)),
        *(word for v in plan.env
          for word in ("--env", v.name if v.secret else f"{v.name}={v.value}")),
        "--name", name, "--label", f"{LABEL}={name}",
        plan.image,
        *init_argv(plan, files.seed, keep=tuple(v.name for v in plan.env)),
    )  # fmt: skip


def effective_binds(plan: Plan, files: Files) -> tuple[Bind, ...]:
    """The plan's binds with bawn's own files put in."""
    own = [Bind(files.init, INIT, "ro", False, "bawn")]
    own += [Bind(files.seed, SEED, "ro", True, "bawn")] if files.seed else []
    shown = [b._replace(source=files.empty) if b.source == EMPTY else b for b in plan.binds]
    return (*shown, *own)


def tmpfs_word(tmpfs: Tmpfs) -> str:
    """docker adds noexec to every --tmpfs unless told otherwise."""
    flags = ["ro" if tmpfs.read_only else "rw", "noexec" if tmpfs.noexec else "exec", "nosuid"]
    return f"{tmpfs.target}:{','.join(flags)},size={size_word(tmpfs.size)}"


def mount_word(bind: Bind) -> str:
    """One `--mount` value: a line of CSV (encoding/csv in docker), quoted where it must be."""
    for path in (bind.source, bind.target):
        if "\n" in path or "\r" in path:
            raise EngineError(f"docker cannot mount a path with a line end: {path!r}", "rename it")
    fields = ["type=bind", f"source={bind.source}", f"target={bind.target}"]
    fields += ["readonly"] if bind.mode == "ro" else []
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([*fields, "bind-propagation=rprivate"])
    return out.getvalue()


def size_word(value: int) -> str:
    """Bytes as docker spells them, exactly: 2147483648 is "2g"."""
    for letter, unit in (("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)):
        if value % unit == 0:
            return f"{value // unit}{letter}"
    return f"{value}b"


def cpus_word(thousandths: int) -> str:
    """2000 is "2", 1500 is "1.5"."""
    return f"{thousandths / 1000:g}"
