"""The hardened block of a Hermes profile, as a change of the ledger; and whether it holds. Pure."""

from collections.abc import Mapping

from bawn.edit import Set, by_name
from bawn.errors import HostError
from bawn.plan.change import Change, FileStep
from bawn.plan.model import Finding
from bawn.teams.hermes import HermesHome, Setting
from bawn.typed import Any

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


def block(allow: tuple[str, ...]) -> tuple[tuple[str, Any], ...]:
    """The keys and their values; `allow` are directories that the gateway may send from.

    Raises HostError for one that Hermes would take apart, or ignore.
    """
    for path in allow:
        if not path.startswith("/") or "," in path or ":" in path:
            raise HostError(
                f"{path!r} cannot be an allowed directory: Hermes splits at `:` and `,` and ignores what is relative",
                "give an absolute path without them",
            )
    return (*BLOCK, ("gateway.media_delivery_allow_dirs", list(allow))) if allow else BLOCK


def changes(home: HermesHome, text: str | None, allow: tuple[str, ...]) -> Change | None:
    """What has to be written; None where it stands there. Raises HostError where it cannot be edited."""
    if home.wrong:
        raise HostError(f"{home.wrong}: Hermes does not read it either", f"mend {home.home}/config.yaml")
    path = f"{home.home}/config.yaml"
    wanted = block(allow)
    keys = tuple(Set(tuple(key.split(".")), value) for key, value in wanted if not _there(home, key, value))
    old = None if text is None else text.encode()
    new = by_name(path)(old or b"", path, keys)
    if new == old:
        return None
    does = "set " + ", ".join(key.key for key in keys)
    step = FileStep(path, old, new, does, 0o600)
    return Change(KIND, f"hardening of the Hermes profile {home.profile}", (step,), ("hermes", "hermes-gateway"))


def _there(home: HermesHome, key: str, value: Any) -> bool:
    """It says so already, in whatever spelling."""
    section, _, name = key.partition(".")
    inner = home.config.get(section) if isinstance(home.config, dict) else None
    got = inner.get(name) if isinstance(inner, dict) else None
    return type(got) is type(value) and bool(got == value)


def verify(home: HermesHome, settings: Mapping[str, Setting], allow: tuple[str, ...]) -> None:
    """Raises HostError where Hermes would not use what was written."""
    if home.wrong:
        raise HostError(f"Hermes could no longer read it: {home.wrong}")
    for key, value in block(allow):
        got = settings[key]
        if got.value != value or got.wrong:
            raise HostError(
                f"Hermes would use {key} = {got.value!r}, set by the {got.layer}, not {value!r}",
                f"change the {got.layer}, or leave it as it is",
            )


def open_ends(found: list[Finding]) -> list[Finding]:
    """What hardening did not close."""
    return [one for one in found if one.severity != "note"]
