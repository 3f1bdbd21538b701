"""The machine, by /proc and system calls only: this is on the way of every run."""

import os
import pwd

from bawn.facts.model import HostFact

CONTROLLERS = ("memory", "pids", "cpu")
_WANTED = frozenset(CONTROLLERS)
APPARMOR = "/etc/apparmor.d/bawn"  # ./install writes it where Ubuntu's restriction is on


def observe() -> HostFact:
    """Reads, never guesses: a controller whose directory cannot be written is not there."""
    uid, gid = os.getuid(), os.getgid()
    person, group = _invoker(uid, gid)
    name = os.uname()
    mounts = text("/proc/self/mountinfo")
    version, roots = cgroups(mounts, text("/proc/self/cgroup"), uid)
    return HostFact(
        uid=uid,
        gid=gid,
        invoker_uid=person,
        invoker_gid=group,
        home=_home(uid, person),
        hostname=name.nodename,
        kernel=name.release,
        machine=name.machine,
        cgroup=version,
        cgroup_roots=roots,
        userns=userns(),
        pid_max=int(text("/proc/sys/kernel/pid_max").strip() or 0),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        cpus=os.cpu_count() or 1,
        swap_note=_swap_note(version, dict(roots).get("memory", "")),
    )


def _invoker(uid: int, gid: int) -> tuple[int, int]:
    """The person: SUDO_UID counts only for root, since anybody can set the variable."""
    sudo_uid, sudo_gid = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if uid == 0 and _is_id(sudo_uid) and _is_id(sudo_gid):
        return int(sudo_uid), int(sudo_gid)
    return uid, gid


def _is_id(text: str) -> bool:
    """A user or group id in decimal; the highest value means "no id" to the kernel."""
    return text.isascii() and text.isdigit() and int(text) < 0xFFFFFFFF


def _home(uid: int, person: int) -> str:
    """The home of the person, resolved: of the password database for root acting for somebody."""
    if uid == person and os.environ.get("HOME", "").startswith("/"):
        return os.path.realpath(os.environ["HOME"])
    try:
        return os.path.realpath(pwd.getpwuid(person).pw_dir)
    except KeyError:
        return "/nonexistent"


def cgroups(mountinfo: str, own: str, uid: int) -> tuple[int, tuple[tuple[str, str], ...]]:
    """(version, ((controller, directory in which groups can be made), ...)).

    A hybrid machine (v1 controllers, v2 for systemd's own use) is version 1.
    """
    one: dict[str, str] = {}
    two = ""
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        point, kind = left.split(" ")[4], right.split(" ")[0]
        if kind == "cgroup2":
            two = two or point
        elif kind == "cgroup":
            options = set(right.split(" ")[2].split(","))
            one |= {controller: point for controller in options & _WANTED}
    if one:
        return 1, tuple((c, one[c]) for c in CONTROLLERS if c in one and _writable(one[c]))
    if not two:
        return 0, ()
    return 2, _unified(two, own, uid)


def _unified(mount: str, own: str, uid: int) -> tuple[tuple[str, str], ...]:
    """v2: as root the top; else the highest group that was delegated to this user.

    A process can be moved only below a common ancestor whose cgroup.procs it can write
    (cgroup-v2.rst, "Delegation Containment").
    """
    path = next((line[3:] for line in own.splitlines() if line.startswith("0::/")), "/")
    candidates = [mount]
    for part in path.strip("/").split("/"):
        candidates.append(f"{candidates[-1]}/{part}")
    for directory in candidates:
        if not _writable(directory) or not _writable(f"{directory}/cgroup.procs"):
            continue
        # The top group alone has no type. There root can enable whatever the kernel has.
        top = directory == mount and uid == 0 and not os.path.exists(f"{directory}/cgroup.type")
        enabled = set(text(f"{directory}/cgroup.{'controllers' if top else 'subtree_control'}").split())
        roots = tuple((c, directory) for c in CONTROLLERS if c in enabled)
        if roots:
            return roots
    return ()


def userns() -> bool:
    """May an ordinary user make a user namespace? What three kinds of kernel ask."""
    limit = text("/proc/sys/user/max_user_namespaces").strip()
    debian = text("/proc/sys/kernel/unprivileged_userns_clone").strip()
    ubuntu = text("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").strip()
    if os.path.exists(APPARMOR):
        ubuntu = ""
    return limit != "0" and debian != "0" and ubuntu != "1"


def _swap_note(version: int, memory: str) -> str:
    if version != 1 or not memory or os.path.exists(f"{memory}/memory.memsw.limit_in_bytes"):
        return ""
    if len(text("/proc/swaps").splitlines()) <= 1:
        return "this machine has no swap"
    return "this kernel has no swap accounting: what is swapped out is not bounded"


def _writable(path: str) -> bool:
    return os.access(path, os.W_OK)


def text(path: str) -> str:
    """A whole file; "" where it cannot be read: every caller takes that as "not there"."""
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""
