"""The table of fields: every key of `bawn.toml` with its kind, default and meaning.

The parser, the JSON Schema and the reference (`bawn policy fields`, docs/policy.md) are made from it.
"""

from bawn.policy import checks, hosts, patterns
from bawn.policy.kinds import (
    BOOLEAN,
    COUNT,
    CPUS,
    REQUIRED,
    SIZE,
    TIME,
    Field,
    Kind,
    Unit,
    listed,
    mapped,
    matching,
    one_of,
    ranged,
    rows,
    string,
    table,
)
from bawn.policy.model import DEFAULT_MASK, EGRESSES, ENGINES, MODES, VERSION, Limits, Outbound
from bawn.policy.units import NotAllowed
from bawn.typed import Any

AGENTS = ("claude", "codex", "shell")


PATH = string(
    "an absolute path, or one that starts with ~/ (no variables)",
    '"~/notes"',
    checks.path,
    checks.path_meant,
    pattern="^(/|~$|~/)",
)
_ROOT = string(
    "an absolute path, or ~/path, of a directory for what may leave; never /, the home or what holds them",
    '"~/vaults/notes/out"',
    checks.outbound_root,
    checks.outbound_root_meant,
    pattern="^(/|~/)",
)
_WORKDIR = string(
    'a path; a relative one, "." too, is taken from the directory of the policy',
    '"."',
    checks.workdir,
    checks.path_meant,
    pattern=".",
)
_BELOW = string("a path below the source, relative to it", '"inbox"', checks.below, pattern="^[^/~]")
_PATTERN = string("a pattern as in .gitignore, without `!`", '".env"', patterns.problem, pattern="^[^!]")
_ENV_PATTERN = "^(?!(HOME|TMPDIR)$|XDG_)[A-Za-z_][A-Za-z0-9_]*$"
_ENV_NAME = string(
    f"a variable name; {', '.join(checks.RESERVED_ENV)} and {checks.RESERVED_ENV_PREFIX}* are bawn's own",
    '"LANG"',
    checks.env_name,
    pattern=_ENV_PATTERN,
)
_ENV_VALUE = string("text of one line", '"text"', also="\t", private=True)
_PASSED = string(
    f"{_ENV_NAME.allowed}; a secret goes into secrets",
    '"LANG"',
    checks.passed_name,
    pattern=_ENV_PATTERN,
)
_SECRET_NAME = string(
    "the name of a variable", '"ANTHROPIC_API_KEY"', checks.secret_name, pattern="^[A-Za-z_][A-Za-z0-9_]*$",
    private=True,
)  # fmt: skip
_CIDR = Kind(
    "a range of IP addresses, host bits zero",
    {"type": "string", "pattern": "^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$"},
    '"203.0.113.0/24"',
    checks.cidr,
)
_ALLOW = string(
    f"name:port, *.name:port (without a port, {hosts.DEFAULT_PORT}) or a group: {' '.join(hosts.GROUPS)}",
    '"api.example.test:443"',
    hosts.problem,
    hosts.meant,
    pattern=r"^(@[a-z]+|(\*\.)?[^*/@:]+(:[1-9][0-9]{0,4})?)$",
)
_MASK = listed(_PATTERN)
_WRITE = listed(_BELOW)
_CIDRS = listed(_CIDR)
_WORDS = listed(string("text", '"sh"', also="\t\n"))
_DEFAULT_MASK = list(DEFAULT_MASK)


def _limit(name: str, unit: Unit, low: int, high: int, why: str, doc: str) -> Field:
    """A limit of `model.Limits`, whose default is the model's."""
    value = getattr(Limits(), name)
    default = unit.show(value) if unit.suffixes else value // unit.scale
    return Field(name, ranged(unit, low, high, unit.toml(value), why), default, doc)


LIMITS = (
    _limit(
        "memory",
        SIZE,
        64 << 20,
        1 << 44,
        "an empty box takes 12MiB, and Node still starts in 64MiB",
        "Memory of the whole box, its /tmp and home included; swap is off.",
    ),
    _limit(
        "cpus",
        CPUS,
        100,
        1_024_000,
        "at 0.1 a start takes 1.6 s",
        "Processors, as a share of time.",
    ),
    _limit(
        "pids",
        COUNT,
        16,
        1 << 22,
        "with 16 Node still starts; the most is the kernel's PID_MAX_LIMIT",
        "Processes and threads.",
    ),
    _limit(
        "tmp",
        SIZE,
        1 << 20,
        1 << 40,
        "it is memory",
        "Size of /tmp, which is private, empty at the start and noexec.",
    ),
    _limit(
        "home",
        SIZE,
        1 << 20,
        1 << 40,
        "it is memory",
        "Size of the private home directory, TMPDIR included; empty at the start.",
    ),
    _limit(
        "open_files",
        COUNT,
        64,
        1 << 20,
        "the most is the kernel's default fs.nr_open",
        "Open files of each process.",
    ),
    _limit(
        "time",
        TIME,
        1,
        30 * 86400,
        "a month is not a run",
        "Wall-clock time of a run; then the whole box is ended.",
    ),
)

MOUNT = (
    Field("source", PATH, REQUIRED, "The host path, mounted at its own absolute path. It must exist."),
    Field("mode", one_of(MODES), "ro", "Read-only (submounts too) or read-write."),
    Field("write", _WRITE, [], "Write roots: directories that are read-write in a read-only source."),
    Field(
        "mask",
        _MASK,
        None,
        "Names the agent never reads in it; [] switches masks off.",
    ),
    Field("create", BOOLEAN, False, "Make a missing write root on the host before the start."),
)

OVERRIDE = (
    Field("path", PATH, REQUIRED, "The one refused path that may be mounted all the same."),
    Field(
        "reason",
        string("at least ten characters", '"why this is needed"', checks.reason, pattern="^.{10}"),
        REQUIRED,
        "Why; it stands in every record.",
    ),
)

_SECRET_TABLE = (
    Field("name", _SECRET_NAME, REQUIRED, "The variable in the box."),
    Field("file", PATH._replace(private=True), REQUIRED, "The file that holds the value: one line of text."),
)
_SECRET = _SECRET_NAME._replace(allowed='"NAME", or { name = "NAME", file = "~/path" }', fields=_SECRET_TABLE)

ENGINE = Field("engine", one_of(ENGINES), "gvisor", "runsc directly, or docker with the runtime runsc.")
EGRESS = Field(
    "egress",
    one_of(EGRESSES),
    "none",
    "No network; the allow-list proxy; or docker's filtered bridge.",
)
IMAGE = Field(
    "image",
    string('"host" or the name of an image', '"host"', checks.image, pattern="^[A-Za-z0-9]"),
    "host",
    "The machine's own /usr, read-only (host), or an image.",
)
LIMITS_FIELD = Field(
    "limits", table(LIMITS, '{ memory = "2GiB" }'), {}, "Hard limits of a run, each merged by itself."
)

PROFILE = (
    Field("agent", one_of(AGENTS), "", "The preset: its program, config directory, environment."),
    Field("command", _WORDS, [], "What runs when no command is given; else the agent itself."),
    Field("workdir", _WORKDIR, ".", "The work directory, mounted at its own absolute path."),
    Field("workdir_mode", one_of(MODES), "rw", "Read-write, or read-only."),
    Field("mask", _MASK, None, "Names in the work directory the agent never reads."),
    Field("write", _WRITE, [], "Write roots of a read-only work directory."),
    ENGINE._replace(default=None),
    IMAGE._replace(default=None),
    EGRESS._replace(default=None),
    Field("allow", listed(_ALLOW), [], "The only hosts it may reach. Empty: none."),
    Field(
        "secrets",
        listed(_SECRET),
        [],
        "Variables whose values come from bawn's own environment, or from a file.",
    ),
    Field("credentials", listed(PATH), [], "Files copied into the agent's private config directory."),
    Field(
        "env",
        mapped(_ENV_NAME, _ENV_VALUE, 'a table of NAME = "value"', '{ LANG = "C.UTF-8" }'),
        {},
        "Variables with plain values. Never a secret.",
    ),
    Field("pass_env", listed(_PASSED), [], "Variables taken from bawn's own environment where set."),
    LIMITS_FIELD,
    Field("mount", rows(MOUNT, "profile.NAME.mount"), [], "One more host path in the box."),
    Field("override", rows(OVERRIDE, "profile.NAME.override"), [], "An exception for one refused path."),
    Field("host_exec", _MASK, [], "Files that the host executes or obeys, yet stay writable."),
    Field("git_links", BOOLEAN, False, "Also mount the git directory that a worktree's .git file points to."),
)
PROFILE_NAME = matching(
    "[a-z0-9][a-z0-9_-]{0,31}", "a name of a-z, 0-9, - and _, at most 32 characters", '"default"'
)

DEFAULTS = (
    ENGINE,
    EGRESS,
    LIMITS_FIELD,
    IMAGE,
    Field(
        "mask",
        _MASK,
        _DEFAULT_MASK,
        "Names the agent never reads, in work directories and mounts without a mask of their own.",
    ),
)
WALL = (
    Field("control_plane", _CIDRS, [], "Ranges that no box may ever reach."),
    Field("deny", _CIDRS, [], "More of them; deny always wins."),
)
OUTBOUND = (
    Field("roots", listed(_ROOT), [], "Only files inside these may leave."),
    Field("deny", _MASK, list(Outbound().deny), "Files that may not leave even so."),
    Field(
        "max_size",
        ranged(SIZE, 1, 1 << 40, '"50MiB"', "a file is staged as a copy"),
        SIZE.show(Outbound().max_size),
        "The largest file that may leave.",
    ),
    Field("scan_secrets", BOOLEAN, False, "Deny a file whose text looks like a secret (detect-secrets)."),
)

_ONE = table(PROFILE, "[profile.default]")


def _version(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value != VERSION:
        if isinstance(value, int) and value > VERSION:
            raise NotAllowed("newer than this bawn", fix=f"upgrade bawn, or write `version = {VERSION}`")
        raise NotAllowed("not the version of this format", str(VERSION))
    return value


TOP = table(
    (
        Field(
            "version",
            Kind(str(VERSION), {"const": VERSION}, str(VERSION), _version),
            REQUIRED,
            "The version of this format.",
        ),
        Field(
            "defaults",
            table(DEFAULTS, "[defaults]"),
            {},
            "What holds where a profile says nothing else.",
        ),
        Field("wall", table(WALL, "[wall]"), {}, "What no box may reach, whatever a profile allows."),
        Field(
            "profile",
            mapped(PROFILE_NAME, _ONE, "tables [profile.NAME]", _ONE.example, least=1),
            REQUIRED,
            "What one kind of run may do.",
        ),
        Field("outbound", table(OUTBOUND, "[outbound]"), {}, "Which files of a reply may leave the machine."),
    ),
    "version = 1",
)
