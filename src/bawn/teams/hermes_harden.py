"""The hardened block of a Hermes profile, as a change of the ledger; and whether it holds. Pure."""

from collections.abc import Mapping

from bawn.edit import Set, by_name
from bawn.errors import HostError
from bawn.plan.change import Change, FileStep
from bawn.plan.model import Finding
from bawn.teams.hermes import HermesHome, Setting
from bawn.typed import Any, NamedTuple

KIND = "team hermes"
# Each is written even where it is the default: else an environment variable could say otherwise.
BLOCK: tuple[tuple[str, Any], ...] = (
    ("terminal.backend", "docker"),
    ("terminal.docker_network", False),
    ("terminal.container_persistent", False),
    ("terminal.docker_persist_across_processes", False),
    ("terminal.docker_mount_cwd_to_workspace", False),
    ("terminal.docker_extra_args", []),
    ("gateway.strict", True),
    ("gateway.trust_recent_files", False),
    ("gateway.trust_recent_files_seconds", 0),
)


class Wish(NamedTuple):
    """What only a person knows: where the gateway may send from, and where a shell may write (every
    volume is read-only then but for these roots; None leaves the volumes as they are)."""

    allow: tuple[str, ...] = ()
    roots: tuple[str, ...] | None = None


def block(wish: Wish, volumes: Any) -> tuple[tuple[str, Any], ...]:
    """The keys and their values; `volumes` are those in force.

    Raises HostError for a path that Hermes or docker would take apart, or ignore.
    """
    for path in (*wish.allow, *(wish.roots or ())):
        if not path.startswith("/") or "," in path or ":" in path:
            raise HostError(
                f"{path!r} cannot be used: Hermes splits at `:` and `,`, and ignores what is relative",
                "give an absolute path without them",
            )
    more: list[tuple[str, Any]] = []
    if wish.allow:
        more.append(("gateway.media_delivery_allow_dirs", list(wish.allow)))
    if wish.roots is not None:
        more.append(("terminal.docker_volumes", _read_only(volumes, wish.roots)))
    return (*BLOCK, *more)


def _read_only(volumes: Any, roots: tuple[str, ...]) -> list[str]:
    """The volumes read-only, and the write roots on top of them, under the same paths."""
    wanted = []
    for volume in volumes if isinstance(volumes, list) else []:
        source, target, *options = (*str(volume).split(":"), "")[:3]
        if source not in roots:
            kept = [word for word in ",".join(options).split(",") if word not in ("", "rw", "ro")]
            wanted.append((source, target, ",".join(["ro", *kept])))
    lines = [":".join(parts) for parts in wanted]
    for root in roots:
        above = [
            (source, target) for source, target, _ in wanted if root.startswith(source.rstrip("/") + "/")
        ]
        if not above:
            raise HostError(f"the write root {root} lies in no volume", "mount the vault that holds it first")
        source, target = max(above)
        lines.append(f"{root}:{target.rstrip('/')}{root[len(source.rstrip('/')) :]}")
    return lines


def changes(home: HermesHome, text: str | None, wish: Wish, volumes: Any) -> Change | None:
    """What has to be written; None where it stands there. Raises HostError where it cannot be edited."""
    if home.wrong:
        raise HostError(f"{home.wrong}: Hermes does not read it either", f"mend {home.home}/config.yaml")
    path = f"{home.home}/config.yaml"
    wanted = block(wish, volumes)
    keys = tuple(Set(tuple(key.split(".")), value) for key, value in wanted if not _there(home, key, value))
    old = None if text is None else text.encode()
    new = by_name(path)(old or b"", path, keys)
    if new == old:
        return None
    does = "set " + ", ".join(key.key for key in keys)
    step = FileStep(path, old, new, does, 0o600)
    return Change(
        KIND, f"hardening of the Hermes profile {home.profile}", (step,), ("hermes", "hermes-gateway")
    )


def _there(home: HermesHome, key: str, value: Any) -> bool:
    """It says so already, in whatever spelling."""
    section, _, name = key.partition(".")
    inner = home.config.get(section) if isinstance(home.config, dict) else None
    got = inner.get(name) if isinstance(inner, dict) else None
    return type(got) is type(value) and bool(got == value)


def verify(home: HermesHome, settings: Mapping[str, Setting], wanted: tuple[tuple[str, Any], ...]) -> None:
    """Raises HostError where Hermes would not use what was written."""
    if home.wrong:
        raise HostError(f"Hermes could no longer read it: {home.wrong}")
    for key, value in wanted:
        got = settings[key]
        if got.value != value or got.wrong:
            raise HostError(
                f"Hermes would use {key} = {got.value!r}, set by the {got.layer}, not {value!r}",
                f"change the {got.layer}, or leave it as it is",
            )


def open_ends(found: list[Finding]) -> list[Finding]:
    """What hardening did not close."""
    return [one for one in found if one.severity != "note"]
