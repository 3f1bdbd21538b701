"""The plan as a value: everything a run will do, in one canonical form with one id.

The canonical form is RFC 8785 JSON. Its values are strings, integers, booleans, arrays and objects
with ASCII keys, for which `json.dumps` with sorted keys and no spaces is already canonical (a test
holds it against the `rfc8785` package).
"""

import json

from bawn.digest import sha256_hex
from bawn.policy.model import Egress, Engine, Mode
from bawn.typed import Any, Literal, NamedTuple

Severity = Literal["error", "warning", "note"]
Role = Literal[
    "system",  # the machine's /usr for image "host"
    "workdir",
    "mount",
    "write-root",
    "mask",  # an empty file over a masked one
    "protect",  # a host-executed or policy file, read-only over a writable tree
    "pin",  # a directory mounted on itself, so that it cannot be renamed away
    "agent",  # the agent's program
    "git-link",
    "bawn",  # PID 1 and the home seed
]


class Finding(NamedTuple):
    """One thing to know about a plan. `rule` is a key of `plan.rules.RULES`."""

    rule: str
    severity: Severity
    place: str  # "bawn.toml:12 profile.build.mount[0].source", or a path
    message: str
    fix: str


class Bind(NamedTuple):
    """A host path made visible in the box."""

    source: str  # resolved host path
    target: str
    mode: Mode
    is_dir: bool
    role: Role

    def describe(self) -> str:
        arrow = "" if self.source == self.target else f" from {self.source}"
        return f"{self.mode} {self.role:<10} {self.target}{arrow}"


class Tmpfs(NamedTuple):
    """A private file system in the box's memory. `role` "mask" covers a masked directory."""

    target: str
    size: int  # bytes
    mode: int  # permission bits
    noexec: bool
    read_only: bool = False
    role: Literal["scratch", "mask"] = "scratch"

    def describe(self) -> str:
        flags = ("ro" if self.read_only else "rw") + (",noexec" if self.noexec else "")
        return f"tmpfs {self.role:<8} {self.target} {self.size} bytes {flags}"


class Guard(NamedTuple):
    """Names that must stay hidden below `root` when they appear later in the run."""

    root: str  # resolved host directory
    patterns: tuple[str, ...]
    held_by: str  # in words: how far that holds

    def describe(self) -> str:
        return f"late masks {' '.join(self.patterns)} below {self.root}: {self.held_by}"


class EnvVar(NamedTuple):
    """An environment variable of the box; `secret` ones have no value here, ever."""

    name: str
    value: str = ""
    secret: bool = False

    def describe(self) -> str:
        return f"{self.name}={'***' if self.secret else self.value}"


class LimitPlan(NamedTuple):
    """One limit, and what enforces it here."""

    name: str  # a field of policy.model.Limits
    value: int
    by: str  # "cgroup", "gvisor", "affinity", "bawn", "docker" or "nothing"
    holds: bool
    note: str = ""

    def describe(self) -> str:
        return f"{self.name} {self.value} by {self.by}" + (f" ({self.note})" if self.note else "")


class Identity(NamedTuple):
    """Who the command is, inside and on the host."""

    uid: int
    gid: int
    host_uid: int
    host_gid: int
    rootless: bool  # True: the box is made in the invoker's own user namespace


class EgressPlan(NamedTuple):
    """The way out: what passes, and where it never leads. `allow` is (pattern, line of policy), `deny`
    (network, what it is); the host's own addresses come to it at the run."""

    mode: Egress
    allow: tuple[tuple[str, str], ...] = ()
    deny: tuple[tuple[str, str], ...] = ()

    def describe(self) -> str:
        hosts = " ".join(pattern for pattern, _ in self.allow) or "nothing"
        return self.mode if self.mode == "none" else f"{self.mode}: {hosts}"


class WayOut(NamedTuple):
    """What `plan.way_out` makes of a profile."""

    egress: EgressPlan
    findings: tuple[Finding, ...]


NO_WAY = WayOut(EgressPlan("none"), ())


class Way(NamedTuple):
    """What lies on the host for the one way out of a run (plan.way)."""

    resolver: str  # the file that the box sees as its resolv.conf
    directory: str = ""  # holds proxy.sock, and no other socket
    address: str = ""  # bridge mode instead: the proxy's, ADDRESS:PORT


class Plan(NamedTuple):
    """What one run will do. It holds no secret value, no run id, no time."""

    profile: str
    policy: str  # path, "" for the built-in defaults
    policy_sha256: str
    engine: Engine
    runsc: str  # version; "" for engine docker
    image: str
    image_digest: str  # of an image that bawn keeps; "" for others
    rootfs: str  # "" for image "host"
    kernel: str
    hostname: str
    identity: Identity
    command: tuple[str, ...]
    workdir: str
    egress: EgressPlan
    binds: tuple[Bind, ...]  # in mount order: a parent always before its children
    tmpfs: tuple[Tmpfs, ...]
    guards: tuple[Guard, ...]
    scan: tuple[str, ...]  # writable host trees to scan for host-executed files after the run
    env: tuple[EnvVar, ...]
    limits: tuple[LimitPlan, ...]
    seed: tuple[tuple[str, str], ...]  # (path below HOME, host file copied there)
    settings: tuple[tuple[str, str], ...]  # (path below HOME, text written there)
    overrides: tuple[tuple[str, str], ...]  # (path, reason) in force
    home_dirs: tuple[str, ...]  # made below HOME at start, parents first
    creates: tuple[str, ...]  # host directories made at the start, parents first
    host_exec: tuple[str, ...]  # patterns of host-executed files that may change
    findings: tuple[Finding, ...]

    def as_data(self) -> dict[str, Any]:
        """The plan as plain JSON data, field names as above."""
        data: dict[str, Any] = _plain(self)
        return {"bawn_plan": 1, **data}

    @property
    def id(self) -> str:
        """sha256 (hex) of the canonical form. Every record cites it."""
        return sha256_hex(canonical(self.as_data()))

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity == "error")

    def limit(self, name: str) -> LimitPlan:
        """The limit of that name. Raises StopIteration for an unknown name."""
        return next(limit for limit in self.limits if limit.name == name)


def canonical(data: Any) -> bytes:
    """RFC 8785 bytes of `data` (which holds no float and only ASCII keys)."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            return {name: _plain(getattr(value, name)) for name in value._fields}
        return [_plain(item) for item in value]
    return value
