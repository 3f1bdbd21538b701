"""Text -> Policy, or every problem of it at once. Strict: an unknown key is a problem."""

from bawn.digest import sha256_hex
from bawn.errors import PolicyError
from bawn.policy import fields
from bawn.policy.fields import REQUIRED, Field
from bawn.policy.model import (
    VERSION,
    Limits,
    Mount,
    Outbound,
    Override,
    Place,
    Policy,
    Profile,
    Secret,
    Wall,
)
from bawn.typed import Any

_Path = tuple[str | int, ...]
_TOP = ("version", "defaults", "wall", "profile", "outbound")


class _Reader:
    """Collects problems: (key path, sentence)."""

    def __init__(self) -> None:
        self.problems: list[tuple[_Path, str]] = []

    def problem(self, path: _Path, sentence: str) -> None:
        self.problems.append((path, sentence))

    def table(
        self, data: Any, path: _Path, table: tuple[Field, ...], also: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """The fields of a table that are set, read; what is wrong or unknown becomes a problem."""
        if not isinstance(data, dict):
            self.problem(path, f"got {_show(data)}; allowed: a table")
            return {}
        known = {field.name: field for field in table}
        values: dict[str, Any] = {}
        for key, value in data.items():
            if key in also:
                continue
            if key not in known:
                self.problem((*path, key), _unknown(key, [*known, *also]))
                continue
            try:
                values[key] = known[key].kind.read(value)
            except ValueError as error:
                self.problem((*path, key), f"got {_show(value)}; allowed: {error}")
        for field in table:
            if field.default is REQUIRED and field.name not in data:
                self.problem((*path, field.name), f"missing; {field.doc}")
        return values


def parse_policy(text: str, path: str) -> Policy:
    """Reads a whole policy. Raises PolicyError whose `problems` are all there are, by line."""
    import tomllib  # 10 ms with what it imports; a run without a policy file needs none

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{path} is not TOML", (f"{path}: {error}",)) from None
    reader = _Reader()
    policy = _policy(data, path, text, reader)
    if reader.problems:
        raise PolicyError(f"{path} is not a valid policy", _render(reader, text, path))
    return policy


def default_policy() -> Policy:
    """What holds without a policy file: one profile, the defaults, the work directory."""
    reader = _Reader()
    profile = _profile("default", {}, {}, Limits(), reader)
    return Policy("", sha256_hex(b""), (profile,))


def select(policy: Policy, name: str | None) -> Profile:
    """The profile of that name; without a name the one called "default", or the only one.

    Raises PolicyError.
    """
    names = [profile.name for profile in policy.profiles]
    wanted = name or ("default" if "default" in names or len(names) != 1 else names[0])
    for profile in policy.profiles:
        if profile.name == wanted:
            return profile
    place = policy.path or "the defaults"
    raise PolicyError(
        f"{place} has no profile {wanted!r}; it has {', '.join(map(repr, names)) or 'none'}",
        fix=f"--profile {names[0]}" if names else f"add [profile.default] to {place}",
    )


def _policy(data: dict[str, Any], path: str, text: str, reader: _Reader) -> Policy:
    for key in data:
        if key not in _TOP:
            reader.problem((key,), _unknown(key, list(_TOP)))
    version = data.get("version")
    if version != VERSION or isinstance(version, bool):
        reader.problem(("version",), f"got {_show(version)}; allowed: {VERSION}; write version = 1")
    defaults = reader.table(data.get("defaults", {}), ("defaults",), fields.DEFAULTS, ("limits",))
    limits = _limits(data.get("defaults", {}), ("defaults",), Limits(), reader)
    wall = reader.table(data.get("wall", {}), ("wall",), fields.WALL)
    outbound = reader.table(data.get("outbound", {}), ("outbound",), fields.OUTBOUND)
    tables = data.get("profile", {})
    if not isinstance(tables, dict):
        reader.problem(("profile",), f"got {_show(tables)}; allowed: tables [profile.NAME]")
        tables = {}
    profiles = tuple(_profile(name, table, defaults, limits, reader) for name, table in tables.items())
    if not profiles and not reader.problems:
        reader.problem(("profile",), "missing; write [profile.default]")
    sha256 = sha256_hex(text.encode())
    return Policy(path, sha256, profiles, Wall(**wall), Outbound(**outbound))


def _limits(data: Any, path: _Path, base: Limits, reader: _Reader) -> Limits:
    """Merged over `base`, one by one."""
    if not isinstance(data, dict) or "limits" not in data:
        return base
    return base._replace(**reader.table(data["limits"], (*path, "limits"), fields.LIMITS))


def _profile(name: str, data: Any, defaults: dict[str, Any], limits: Limits, reader: _Reader) -> Profile:
    path: _Path = ("profile", name)
    try:
        fields.NAME.read(name)
    except ValueError as error:
        reader.problem(path, f"got {_show(name)}; allowed: {error}")
    values = reader.table(data, path, fields.PROFILE, ("limits", "mount", "override"))
    data = data if isinstance(data, dict) else {}
    own = _limits(data, path, limits, reader)
    merged = {field.name: field.default for field in fields.PROFILE} | defaults | values
    secrets = tuple(Secret(*pair) for pair in merged.pop("secrets"))
    _conflicts(path, merged, secrets, reader)
    return Profile(
        name=name,
        secrets=secrets,
        limits=own,
        mounts=tuple(_rows(data, path, "mount", reader)),
        overrides=tuple(_rows(data, path, "override", reader)),
        place=_place(path),
        **merged,
    )


def _conflicts(path: _Path, values: dict[str, Any], secrets: tuple[Secret, ...], reader: _Reader) -> None:
    """What is wrong only together."""
    if values["allow"] and values["egress"] == "none":
        reader.problem((*path, "allow"), 'has no effect with egress = "none"; write egress = "proxy"')
    if values["write"] and values["workdir_mode"] == "rw":
        reader.problem(
            (*path, "write"),
            'has no effect on a read-write work directory; write workdir_mode = "ro"',
        )
    named = [name for name, _ in values["env"]] + list(values["pass_env"])
    for name in sorted({s.name for s in secrets} & set(named)):
        reader.problem((*path, "secrets"), f"{name} stands in env or pass_env too; keep one")


def _rows(data: dict[str, Any], path: _Path, key: str, reader: _Reader) -> list[Any]:
    """`[[profile.NAME.mount]]` or `[[profile.NAME.override]]`."""
    rows = data.get(key, [])
    if not isinstance(rows, list):
        reader.problem((*path, key), f"got {_show(rows)}; allowed: [[{_dotted((*path, key))}]]")
        return []
    table = fields.MOUNT if key == "mount" else fields.OVERRIDE
    made: list[Any] = []
    for number, row in enumerate(rows):
        where = (*path, key, number)
        values = {field.name: field.default for field in table} | reader.table(row, where, table)
        if any(value is REQUIRED for value in values.values()):
            continue  # it is a problem already
        if key == "override":
            made.append(Override(**values, place=_place(where)))
            continue
        if values["write"] and values["mode"] == "rw":
            reader.problem((*where, "write"), 'has no effect on a read-write source; write mode = "ro"')
        made.append(Mount(**values, place=_place(where)))
    return made


def _place(path: _Path) -> Place:
    """The line is looked up when a finding is shown (`lines.line_of`), never on the way to a run."""
    return Place(0, _dotted(path))


def _render(reader: _Reader, text: str, path: str) -> tuple[str, ...]:
    from bawn.policy.lines import line_of

    rows = sorted((line_of(text, where), _dotted(where), s) for where, s in reader.problems)
    return tuple(f"{path}:{line}: {where}: {sentence}" for line, where, sentence in rows)


def _dotted(path: _Path) -> str:
    out = ""
    for part in path:
        out += f"[{part}]" if isinstance(part, int) else (f".{part}" if out else part)
    return out


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _unknown(key: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(key, known, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"unknown key; allowed: {', '.join(known)}{hint}"
