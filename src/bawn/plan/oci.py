"""Plan -> OCI runtime bundle for runsc (engine gvisor). Pure.

https://github.com/opencontainers/runtime-spec; what runsc does with each field was measured, see
docs/box.md. The bundle holds secrets (in `process.env`), so whoever writes it writes mode 0600.
"""

from collections.abc import Iterable

from bawn.plan.model import Bind, Plan, Tmpfs, Way
from bawn.plan.mounts import mount_order
from bawn.policy.pathtext import ancestors
from bawn.typed import Any, NamedTuple

INIT = "/run/bawn/init"
SEED = "/run/bawn/seed"
WAY = "/run/bawn/way"  # the directory with the proxy's socket, the only one of any mount
SOCKET = f"{WAY}/proxy.sock"
CONTROL = 3  # the descriptor on which PID 1 hears of signals (launch.c)
REPORT = 4  # the one on which it says that the command begins
EMPTY = "@empty"  # Bind.source of a mask: bawn's own empty file
HOME = "/home/agent"
# A user id that no file of the host belongs to: the owner, outside, of what is root in a box that
# bawn makes as root. Above every range that systemd, adduser or subuid hand out.
UNUSED_ID = 2_147_483_000


class Empty(NamedTuple):
    """What covers masked names: an empty file and an empty directory of the run's own."""

    file: str
    directory: str


def bundle(
    plan: Plan,
    *,
    rootfs: str,
    image: Iterable[tuple[str, str]],
    empty: Empty,
    init: str,
    seed: str,
    tty: bool,
    secrets: dict[str, str],
    way: Way | None = None,
) -> dict[str, Any]:
    """The `config.json` of a run. `seed` is "" where nothing is copied into the home; `image` are the
    image's own directories as (source, target); `way` is what lies on the host for the
    one way out.

    `secrets` maps each secret name of the plan to its value; a missing one is a KeyError.
    """
    identity = plan.identity
    environment = [f"{v.name}={secrets[v.name] if v.secret else v.value}" for v in plan.env]
    namespaces = [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]
    linux: dict[str, Any] = {"namespaces": namespaces}
    if not identity.rootless:
        namespaces.append({"type": "user"})
        linux["uidMappings"] = _mapping(identity.uid, identity.host_uid)
        linux["gidMappings"] = _mapping(identity.gid, identity.host_gid)
    none: list[str] = []
    sets = ("bounding", "effective", "inheritable", "permitted", "ambient")
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": tty,
            "user": {"uid": identity.uid, "gid": identity.gid},
            "args": list(init_argv(plan, seed, way=way)),
            "env": environment,
            "cwd": plan.workdir,
            "capabilities": dict.fromkeys(sets, none),
            "rlimits": [_rlimit(kind, value) for kind, value in _rlimits(plan)],
            "noNewPrivileges": True,
        },
        "root": {"path": rootfs, "readonly": True},
        "hostname": plan.hostname,
        "mounts": _mounts(plan, image, empty, init, seed, way),
        "linux": linux,
    }


def init_argv(plan: Plan, seed: str, keep: tuple[str, ...] = (), way: Way | None = None) -> tuple[str, ...]:
    """PID 1 and its arguments: the variables it keeps (of an image's own), the directories of the
    home, the seed, the way out, the command."""
    kept = [word for name in keep for word in ("-e", name)]
    made = [word for name in plan.home_dirs for word in ("-d", name)]
    control = ("-r", str(REPORT), "-f", str(CONTROL)) if plan.engine == "gvisor" else ()
    out = ("-p", way.address or SOCKET) if way else ()
    return (INIT, *control, *kept, *made, *(("-s", SEED) if seed else ()), *out, "--", *plan.command)


def flags(plan: Plan, way: bool = False) -> tuple[str, ...]:
    """runsc's global flags, each with its reason."""
    return (
        "--network=none",  # topology, not politeness
        "--ignore-cgroups",  # launch.c has joined them already
        "--overlay2=none",  # the root is read-only and has every mount point
        f"--host-uds={'open' if way else 'none'}",
        "--host-fifo=none",
        "--platform=systrap",  # works without KVM, which hangs on some hosts when it is probed
        "--oci-seccomp=false",
        *(("--rootless",) if plan.identity.rootless else ()),
    )


def _mapping(inside: int, outside: int) -> list[dict[str, int]]:
    return [
        {"containerID": 0, "hostID": UNUSED_ID, "size": 1},
        {"containerID": inside, "hostID": outside, "size": 1},
    ]


def _rlimits(plan: Plan) -> tuple[tuple[str, int], ...]:
    return (
        ("RLIMIT_NOFILE", plan.limit("open_files").value),
        ("RLIMIT_NPROC", plan.limit("pids").value),
        ("RLIMIT_CORE", 0),
    )


def _rlimit(kind: str, value: int) -> dict[str, Any]:
    return {"type": kind, "soft": value, "hard": value}


def targets(plan: Plan, seed: str, way: Way | None = None) -> dict[str, bool]:
    """Every mount point that must be there before runsc starts: path -> is it a directory. What lies
    inside a mounted directory is there already."""
    found = {"/proc": True, "/dev": True, "/sys": True, "/var/tmp": True, INIT: False}
    found |= {SEED: True} if seed else {}
    found |= {t.target: True for t in plan.tmpfs if not t.target.startswith("/dev/")}
    # The /etc of image "host" has a resolv.conf to mount on, and is one mount so; opened for a mount point
    # it would be forty (50 ms). In another image that may be a link, or missing.
    ours = _way_binds(way) if plan.rootfs else _way_binds(way)[:1]
    found |= {bind.target: bind.is_dir for bind in (*plan.binds, *ours)}
    shown = {bind.target for bind in plan.binds if bind.is_dir}
    return {
        target: is_dir
        for target, is_dir in found.items()
        if not any(above in shown for above in ancestors(target)[1:])
    }


def _mounts(
    plan: Plan,
    image: Iterable[tuple[str, str]],
    empty: Empty,
    init: str,
    seed: str,
    way: Way | None,
) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [{"destination": "/proc", "type": "proc", "source": "proc"}]
    mounts += [_bind(Bind(source, target, "ro", True, "system"), empty) for source, target in image]
    mounts += [_mount(one, plan, empty) for one in mount_order(plan.binds, plan.tmpfs)]
    mounts.append(_bind(Bind(init, INIT, "ro", False, "bawn"), empty))
    if seed:
        mounts.append(_bind(Bind(seed, SEED, "ro", True, "bawn"), empty))
    return mounts + [_bind(bind, empty) for bind in _way_binds(way)]


def _way_binds(way: Way | None) -> tuple[Bind, ...]:
    if way is None:
        return ()
    from bawn.plan.way import binds  # a run without a way out does not pay for it

    return binds(way)


def _mount(one: Bind | Tmpfs, plan: Plan, empty: Empty) -> dict[str, Any]:
    if isinstance(one, Bind):
        return _bind(one, empty)
    if one.role == "mask":
        # Not a tmpfs: the late masks know what may be opened under a masked name by its inode (launch.c).
        return _bind(Bind(empty.directory, one.target, "ro", True, "mask"), empty)
    return _tmpfs(one, plan)


def _bind(bind: Bind, empty: Empty) -> dict[str, Any]:
    options = ["rbind", bind.mode, "nosuid", "nodev"]
    source = empty.file if bind.source == EMPTY else bind.source
    return {"destination": bind.target, "type": "bind", "source": source, "options": options}


def _tmpfs(tmpfs: Tmpfs, plan: Plan) -> dict[str, Any]:
    options = ["nosuid", "nodev", f"size={tmpfs.size}", f"mode={tmpfs.mode:04o}"]
    if tmpfs.mode & 0o1000 == 0:
        options += [f"uid={plan.identity.uid}", f"gid={plan.identity.gid}"]
    options += ["ro"] if tmpfs.read_only else ["rw"]
    options += ["noexec"] if tmpfs.noexec else []
    return {"destination": tmpfs.target, "type": "tmpfs", "source": "tmpfs", "options": options}
