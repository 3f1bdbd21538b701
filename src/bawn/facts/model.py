"""The facts as values. A fact that could not be observed says so; it is never guessed."""

from bawn.typed import Literal, NamedTuple

Kind = Literal["dir", "file", "socket", "fifo", "device", "link", "missing"]


class Component(NamedTuple):
    """A directory on the way to a path, as `lstat` saw it."""

    path: str
    uid: int
    gid: int
    mode: int  # permission bits
    dev: int
    ino: int


class PathFact(NamedTuple):
    """One path, resolved once. Everything later uses `path`, never the text again."""

    asked: str  # as written in the policy
    path: str  # absolute, every symlink resolved; "" where it does not exist
    kind: Kind
    uid: int = -1
    gid: int = -1
    mode: int = 0  # permission bits
    dev: int = 0
    ino: int = 0
    links: tuple[str, ...] = ()  # the symlinks on the way, as "link -> target"
    error: str = ""  # why it could not be read: names the blocking component and its mode
    chain: tuple[Component, ...] = ()  # the directories above, "/" first
    would_be: str = ""  # where a missing path would lie: the part that exists resolved
    origin: str = ""  # "254:0/home/u": the file system and the path in it, the same for every bind


FindKind = Literal["socket", "fifo", "device", "mask", "gitfile", "host-exec", "policy"]


class Find(NamedTuple):
    """Something that the one walk of a mounted tree was asked to look for."""

    kind: FindKind
    path: str  # absolute path in the tree, the link itself where it is one
    is_dir: bool  # a link's target is one
    target: str = ""  # a link's resolved target ("" where not a link); "?" where it dangles
    detail: str = ""  # the pattern that matched, or why it is looked for
    names: int = 1  # hard links of a masked file: others may be readable elsewhere
    ino: int = 0  # of the entry itself: a file that was replaced during the run has another


class GitFile(NamedTuple):
    """Where a `.git` file (or link) points, each resolved, "" where it does not exist."""

    path: str  # of the `.git` file
    gitdir: str
    common: str  # the repository's own git directory; that of a submodule is its gitdir
    acknowledged: bool  # the git directory names this worktree in return


# File systems of ordinary files: a bind of one is what it seems (unlike proc or autofs).
_PLAIN = """
ext2 ext3 ext4 xfs btrfs bcachefs f2fs jfs reiserfs zfs tmpfs ramfs overlay aufs
vfat exfat ntfs ntfs3 fuseblk hfsplus apfs udf iso9660 squashfs erofs
nfs nfs4 cifs smb3 9p virtiofs ceph ecryptfs
fuse.sshfs fuse.gocryptfs fuse.encfs fuse.mergerfs fuse.fuse-overlayfs
"""
PLAIN_FILESYSTEMS = frozenset(_PLAIN.split())


class Submount(NamedTuple):
    """A mount below a mount source, from /proc/self/mountinfo."""

    point: str
    fstype: str
    read_only: bool
    at: PathFact = PathFact("", "", "missing")


class TreeFact(NamedTuple):
    """What one walk of a mount source found. Never follows a symlink out of the tree."""

    source: str  # resolved
    finds: tuple[Find, ...]
    entries: int  # directory entries seen
    unreadable: tuple[Component, ...] = ()  # directories that could not be listed
    casefold: bool = False  # names differ by case alone reach the same file here
    submounts: tuple[Submount, ...] = ()
    masks: tuple[tuple[str, str], ...] = ()  # (directory, pattern below it) the walk looked for
    gitfiles: tuple[GitFile, ...] = ()
    too_deep: tuple[str, ...] = ()  # directories whose path is longer than PATH_MAX
    at: PathFact | None = None  # a git directory that only the walk found (`git_links`)


class HostFact(NamedTuple):
    uid: int  # of bawn itself
    gid: int
    invoker_uid: int  # the person: SUDO_UID where bawn is root through sudo, else uid
    invoker_gid: int
    home: str  # of the invoker, resolved
    hostname: str
    kernel: str
    machine: str
    cgroup: int  # 1, 2, or 0 where none is mounted
    cgroup_roots: tuple[tuple[str, str], ...]  # (controller, writable directory), where one is
    userns: bool  # an ordinary user may make a user namespace
    pid_max: int
    memory: int  # bytes
    cpus: int
    swap_note: str = ""  # why a box's swap cannot be bounded (v1 without swap accounting)


class RunscFact(NamedTuple):
    path: str  # "" where not installed
    version: str
    platforms: tuple[str, ...]
    problem: str = ""  # why it cannot be used, with the remedy in `fix`
    fix: str = ""
    usable: bool = False  # by root: engine docker needs no more of it


class DockerRuntime(NamedTuple):
    name: str
    path: str
    args: tuple[str, ...]
    real: str = ""  # `path` with links resolved, where it is absolute
    script: str = ""  # the text of a runtime that is a script: it may hide arguments
    kind: str = ""  # runtimeType: a containerd shim, whose arguments cannot be seen


class DockerFact(NamedTuple):
    cli: str  # "" where not installed
    endpoint: str  # DOCKER_HOST or the default socket
    server: str  # version, "" where the daemon does not answer
    runtimes: tuple[DockerRuntime, ...] = ()
    problem: str = ""
    fix: str = ""
    rootless: bool = False
    remote: bool = False  # the daemon's paths are not ours (DOCKER_HOST over the net, a VM)
    userns: bool = False  # the daemon maps ids (userns-remap): uid 1000 inside is another outside
    cgroup: str = ""  # driver and version, "systemd v2"
    lacks: tuple[str, ...] = ()  # limits that the daemon says it cannot hold


class AgentFact(NamedTuple):
    """An agent's command-line program on this host (`teams.presets` says how it is used)."""

    name: str
    executable: str  # resolved program, "" where not found
    mounts: tuple[str, ...]  # the directories or files that must be visible for it to run
    argv: tuple[str, ...]  # how to start it inside, e.g. (node, cli.js) or (binary,)
    searched: tuple[str, ...] = ()
    open_to_all: str = ""  # a part of it that every user of the machine may write


class ImageFact(NamedTuple):
    name: str
    rootfs: str  # unpacked root file system for engine gvisor; "" for "host"
    digest: str = ""  # of its manifest; for engine docker, of its one layer
    programs: tuple[tuple[str, str], ...] = ()  # agents that the image brings -> their path in it
    problem: str = ""  # why it cannot be used


class RegistryFact(NamedTuple):
    """Where this machine's own client of packages fetches from, by its configuration."""

    group: str  # "@npm"
    hosts: tuple[str, ...]  # name:port; never with a user or a password
    sources: tuple[str, ...] = ()  # the files and variables that say so
    problem: str = ""  # what is missing, or could not be taken
    fix: str = ""


class Facts(NamedTuple):
    """All that a plan may depend on."""

    host: HostFact
    runsc: RunscFact
    docker: DockerFact | None  # None: not asked for
    image: ImageFact
    agent: AgentFact | None
    cwd: str  # resolved
    state: str  # bawn's own state directory, resolved
    runtime: str  # bawn's own runtime directory (sockets, bundles), resolved
    paths: tuple[PathFact, ...]  # one for each path the profile names, plus the refused ones
    trees: tuple[TreeFact, ...]  # one for each mount source that exists
    environ: tuple[tuple[str, str], ...] = ()  # only the names in pass_env that are set
    have_secrets: tuple[str, ...] = ()  # names whose value was found; never the value
    registries: tuple[RegistryFact, ...] = ()  # of the @groups that the profile names
