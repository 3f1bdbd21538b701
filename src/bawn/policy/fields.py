"""The table of fields: every key of `bawn.toml` with its kind, default and meaning.

The parser, the JSON Schema and docs/policy.md are all made from it.
"""

import re
from collections.abc import Callable

from bawn.policy import hosts, pathtext, units
from bawn.policy.model import DEFAULT_MASK, EGRESSES, ENGINES, MODES, Outbound
from bawn.typed import Any, NamedTuple

REQUIRED = object()
AGENTS = ("claude", "codex", "shell")
# bawn sets these itself; a policy that set them would move the home or the temporary directory.
RESERVED_ENV = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)($|_)")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@:-]{0,254}")


class Kind(NamedTuple):
    """How a value is read. `read` raises ValueError saying what is allowed."""

    read: Callable[[Any], Any]
    schema: dict[str, Any]


class Field(NamedTuple):
    """One key. `doc` is one sentence for a person who writes a policy."""

    name: str
    kind: Kind
    default: Any
    doc: str


def _text(value: Any) -> str:
    if not isinstance(value, str) or any(ord(c) < 32 or ord(c) == 127 for c in value):
        raise ValueError("a string without control characters")
    return value


def _checked(check: Callable[[str], str], allowed: str) -> Callable[[Any], str]:
    """A string for which `check` names no problem."""

    def read(value: Any) -> str:
        problem = check(_text(value))
        if problem:
            raise ValueError(f"{allowed}; this is {problem}")
        return str(value)

    return read


def _matching(pattern: re.Pattern[str], allowed: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not pattern.fullmatch(_text(value)):
            raise ValueError(allowed)
        return str(value)

    return read


def _one_of(choices: tuple[str, ...]) -> Kind:
    def read(value: Any) -> str:
        if value not in choices or not isinstance(value, str):
            raise ValueError(f"one of {', '.join(map(repr, choices))}")
        return value

    return Kind(read, {"enum": list(choices)})


def _list(item: Kind) -> Kind:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError("a list")
        read_items = []
        for each in value:
            try:
                read_items.append(item.read(each))
            except ValueError as error:
                raise ValueError(f"{error} (wrong is {each!r})") from None
        return tuple(read_items)

    return Kind(read, {"type": "array", "items": item.schema})


def _ranged(read: Callable[[Any], int], low: int, high: int, why: str, schema: Any) -> Kind:
    def checked(value: Any) -> int:
        number = read(value)
        if not low <= number <= high:
            raise ValueError(why)
        return number

    return Kind(checked, schema)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a whole number")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _pattern_problem(text: str) -> str:
    if not text or text.startswith("/") or text.endswith("//"):
        return "empty or absolute"
    if ".." in text.split("/"):
        return "a way upwards"
    return ""


def _relative_problem(text: str) -> str:
    parts = text.split("/")
    if not text or text.startswith(("/", "~")) or ".." in parts or text in (".", "./"):
        return "empty, absolute, the source itself or a way upwards"
    return pathtext.problem(text, relative=True)


def _cidr(value: Any) -> str:
    import ipaddress

    try:
        return str(ipaddress.ip_network(_text(value)))
    except ValueError:
        raise ValueError('an IP range such as "203.0.113.0/24", host bits zero') from None


def _env(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise ValueError('a table of NAME = "value"')
    for name, text in value.items():
        _env_name(name)
        if not isinstance(text, str) or "\0" in text:
            raise ValueError(f"a string for {name}")
        if _SECRET_NAME.search(name.upper()) and text:
            raise ValueError(f'no secret in the file: write secrets = ["{name}"] instead')
    return tuple(value.items())


def _env_name(value: Any) -> str:
    if not _ENV.fullmatch(_text(value)):
        raise ValueError("a variable name such as LANG")
    if value in RESERVED_ENV:
        raise ValueError(f"a name that bawn does not set itself ({', '.join(RESERVED_ENV)})")
    return str(value)


def _secret(value: Any) -> tuple[str, str]:
    if isinstance(value, str):
        return _env_name(value), ""
    if isinstance(value, dict) and set(value) == {"name", "file"}:
        return _env_name(value["name"]), SOURCE.read(value["file"])
    raise ValueError('"NAME" or { name = "NAME", file = "~/path" }')


def _reason(value: Any) -> str:
    if len(_text(value).strip()) < 10:
        raise ValueError("a reason in at least ten characters: it stands in every record")
    return str(value)


STRING = {"type": "string"}
_SIZE = {"type": ["string", "integer"], "examples": ["2GiB", "64MiB"]}
_TIME = {"type": ["string", "integer"], "examples": ["2h", "90s"]}
SOURCE = Kind(_checked(pathtext.problem, "an absolute path, or one that starts with ~/"), STRING)
_WORKDIR = Kind(
    _checked(lambda t: pathtext.problem(t, relative=True), "a path, or . for the policy's directory"),
    STRING,
)
_MASK = _list(Kind(_checked(_pattern_problem, "a name or a relative pattern"), STRING))
_BELOW = _list(Kind(_checked(_relative_problem, "a path below the source"), STRING))
_BOOL = Kind(_boolean, {"type": "boolean"})
_STRINGS = _list(Kind(_text, STRING))
_CIDRS = _list(Kind(_cidr, STRING))
NAME = Kind(_matching(_NAME, "a name of a-z, 0-9, - and _, at most 32 characters"), STRING)
_WIDE = _list(Kind(_text, STRING))

LIMITS = (
    Field(
        "memory",
        _ranged(units.size, 64 << 20, 1 << 44, "64MiB (runsc and a shell need about 40) to 16TiB", _SIZE),
        "2GiB",
        "Memory of the whole box, its private file systems included; swap is off.",
    ),
    Field(
        "cpus",
        _ranged(units.cpus, 100, 1_024_000, "0.1 to 1024", {"type": "number"}),
        2,
        "Processors, as a share of time.",
    ),
    Field(
        "pids",
        _ranged(_integer, 16, 4_194_304, "16 to 4194304 (pid_max of a 64-bit kernel)", {"type": "integer"}),
        512,
        "Processes and threads.",
    ),
    Field("tmp", _ranged(units.size, 1 << 20, 1 << 40, "1MiB to 1TiB", _SIZE), "64MiB", "Size of /tmp."),
    Field(
        "home",
        _ranged(units.size, 1 << 20, 1 << 40, "1MiB to 1TiB", _SIZE),
        "256MiB",
        "Size of the private home.",
    ),
    Field(
        "open_files",
        _ranged(_integer, 64, 1_048_576, "64 to 1048576 (fs.nr_open)", {"type": "integer"}),
        4096,
        "Open files of each process.",
    ),
    Field(
        "time", _ranged(units.duration, 1, 30 * 86400, "1s to 30d", _TIME), "2h", "Wall-clock time of a run."
    ),
)

MOUNT = (
    Field("source", SOURCE, REQUIRED, "The host path, mounted at its own absolute path."),
    Field("mode", _one_of(MODES), "ro", "Read-only or read-write."),
    Field("write", _BELOW, (), "Write roots: read-write on top of a read-only source."),
    Field("mask", _MASK, DEFAULT_MASK, "Names the agent must never read; [] switches masks off."),
    Field("create", _BOOL, False, "Make a missing write root on the host."),
)

OVERRIDE = (
    Field("path", SOURCE, REQUIRED, "The one refused path that may be mounted."),
    Field("reason", Kind(_reason, STRING), REQUIRED, "Why; it stands in every record."),
)

_SHARED = (
    Field("engine", _one_of(ENGINES), "gvisor", "runsc directly, or docker with the runsc runtime."),
    Field(
        "egress", _one_of(EGRESSES), "none", "No network, the allow-list proxy, or docker's filtered bridge."
    ),
    Field(
        "image",
        Kind(_matching(_IMAGE, '"host" or the name of an image'), STRING),
        "host",
        "The machine's own /usr (host), or an image.",
    ),
    Field("mask", _MASK, DEFAULT_MASK, "Names in the work directory that the agent must never read."),
)

PROFILE = (
    Field("agent", _one_of(AGENTS), "", "The preset: its program, config directory, environment."),
    Field("command", _STRINGS, (), "What runs when no command is given; else the agent itself."),
    Field("workdir", _WORKDIR, ".", "The work directory, mounted at its own absolute path."),
    Field("workdir_mode", _one_of(MODES), "rw", "Read-write, or read-only."),
    Field("write", _BELOW, (), "Write roots of a read-only work directory."),
    *_SHARED,
    Field(
        "allow",
        _list(Kind(_checked(hosts.problem, "name:port, *.name:port or @group"), STRING)),
        (),
        "The only hosts it may reach, where egress is not none.",
    ),
    Field(
        "secrets",
        _list(Kind(_secret, {"type": ["string", "object"]})),
        (),
        "Variables taken by name from bawn's environment, or from a file.",
    ),
    Field("credentials", _list(SOURCE), (), "Files copied into the agent's private config directory."),
    Field(
        "env",
        Kind(_env, {"type": "object", "additionalProperties": STRING}),
        (),
        "Variables with plain values.",
    ),
    Field("pass_env", _list(Kind(_env_name, STRING)), (), "Variables passed on where they are set."),
    Field("host_exec", _MASK, (), "Files the host may execute that stay writable all the same."),
    Field("git_links", _BOOL, False, "Also mount the git directory that a worktree points to."),
)

WALL = (
    Field("control_plane", _CIDRS, (), "Ranges that no box may ever reach."),
    Field("deny", _CIDRS, (), "More of them; deny always wins."),
)
OUTBOUND = (
    Field("roots", _list(SOURCE), (), "Only files inside these may leave."),
    Field("deny", _WIDE, Outbound().deny, "Patterns that may not leave even so."),
)
DEFAULTS = _SHARED
