"""The policy as values. Built only by `parse`, so a `Policy` that exists is a valid one.

Sizes are bytes, durations seconds, CPU is thousandths of a processor. Paths are kept as written
(a leading `~` unexpanded): `facts.paths` resolves them once.
"""

from bawn.typed import Literal, NamedTuple

Engine = Literal["gvisor", "docker"]
Egress = Literal["none", "proxy", "bridge"]
Mode = Literal["ro", "rw"]

ENGINES: tuple[Engine, ...] = ("gvisor", "docker")
EGRESSES: tuple[Egress, ...] = ("none", "proxy", "bridge")
MODES: tuple[Mode, ...] = ("ro", "rw")
DEFAULT_MASK = (".env", ".env.*")
VERSION = 1


class Place(NamedTuple):
    """Where in the policy file a value stands: a 1-based line (0: a default) and its dotted key."""

    line: int
    field: str


class Limits(NamedTuple):
    """Hard limits of one box (seed 001's hardened set is the default)."""

    memory: int = 2 << 30  # bytes; swap is off
    cpus: int = 2000  # thousandths of one CPU
    pids: int = 512  # processes and threads
    tmp: int = 64 << 20  # bytes of /tmp
    home: int = 256 << 20  # bytes of /home/agent
    open_files: int = 4096
    time: int = 7200  # seconds of wall clock


class Secret(NamedTuple):
    """A value passed by name: read from bawn's own environment, or from `file` where given."""

    name: str
    file: str = ""


class Override(NamedTuple):
    """A person's exception: this one refused path may be mounted, for this reason."""

    path: str
    reason: str
    place: Place


class Mount(NamedTuple):
    """One `[[profile.NAME.mount]]`."""

    source: str
    mode: Mode
    write: tuple[str, ...]  # write roots below a read-only source, relative to it
    mask: tuple[str, ...]  # gitignore-like patterns: without a slash, at any depth
    create: bool  # make a missing write root on the host, owned by the invoking user
    place: Place


class Profile(NamedTuple):
    """What one kind of run may do."""

    name: str
    agent: str  # a preset of bawn.teams.presets, or "" for none
    command: tuple[str, ...]  # run when none is given; () means the agent's own
    workdir: str  # "." is the directory of the policy file
    workdir_mode: Mode
    mask: tuple[str, ...]  # masks of the work directory
    write: tuple[str, ...]  # write roots of a read-only work directory
    engine: Engine
    image: str  # "host" or the name of an image
    egress: Egress
    allow: tuple[str, ...]  # HostPattern texts and @groups
    secrets: tuple[Secret, ...]
    credentials: tuple[str, ...]  # host files copied into the agent's config directory
    env: tuple[tuple[str, str], ...]
    pass_env: tuple[str, ...]  # names taken from bawn's own environment where set
    limits: Limits
    mounts: tuple[Mount, ...]
    overrides: tuple[Override, ...]
    host_exec: tuple[str, ...]  # patterns of host-executed files left writable
    git_links: bool  # also mount the git directory a worktree's `.git` file points to
    place: Place


class Wall(NamedTuple):
    control_plane: tuple[str, ...] = ()  # CIDRs that no box may ever reach
    deny: tuple[str, ...] = ()


class Outbound(NamedTuple):
    roots: tuple[str, ...] = ()
    deny: tuple[str, ...] = (".env*", "**/.git/**", "**/credentials*")
    max_size: int = 50 << 20  # bytes of one file
    scan_secrets: bool = False


class Policy(NamedTuple):
    """A whole `bawn.toml`. `path` is where it was read ("" for the built-in defaults)."""

    path: str
    sha256: str  # of the file's bytes; what `bawn trust` trusts
    profiles: tuple[Profile, ...]
    wall: Wall = Wall()
    outbound: Outbound = Outbound()
