"""Text -> Policy, or every problem of it at once. Strict: an unknown key is a problem. Pure.

text --tomllib--> data --reader, along fields.TOP--> values --_check--> --_build--> Policy
"""

from bawn.digest import sha256_hex
from bawn.errors import PolicyError
from bawn.policy import checks, fields
from bawn.policy.kinds import REQUIRED, Field
from bawn.policy.model import (
    DEFAULT_MASK,
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
from bawn.policy.reader import Path, Reader
from bawn.typed import Any

_Values = dict[str, Any]


def parse_policy(text: str, path: str, data: dict[str, Any] | None = None) -> Policy:
    """Reads a whole policy. `data` is what `toml(text)` gave, where that is known already.

    Raises PolicyError whose `problems` are all there are, each with its line.
    """
    data = toml(text, path) if data is None else data
    reader = Reader()
    values = reader.table(fields.TOP, data, ())
    _check(values, reader)
    if reader.problems:
        from bawn.policy.problems import render

        count = len(reader.problems)
        raise PolicyError(
            f"{path} is not a valid policy: {count} problem{'s' if count > 1 else ''}",
            render(reader.problems, text, path),
        )
    return _build(values, path, sha256_hex(text.encode()))


def toml(text: str, path: str) -> dict[str, Any]:
    """The data of a TOML text. Raises PolicyError."""
    import tomllib  # 15 ms with what it imports: a run of a trusted policy does without (facts.trust)

    from bawn.policy import lines

    try:
        text.encode()  # a lone surrogate is no text
        overlong = lines.overlong_key(text)
        if overlong:
            raise ValueError(f"a key of very many parts (at line {overlong})")
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError; too many digits; too deep
        from bawn.policy.problems import syntax

        raise PolicyError(f"{path} is not TOML", (syntax(error, text, path),)) from None


def default_policy() -> Policy:
    """What holds without a policy file: one profile, the defaults, the work directory."""
    return _build({"profile": (("default", {}),)}, "", sha256_hex(b""))


def select(policy: Policy, name: str | None) -> Profile:
    """The profile of that name; without a name the one called "default", or the only one.

    Raises PolicyError.
    """
    names = [profile.name for profile in policy.profiles]
    wanted = name or (names[0] if len(names) == 1 else "default")
    for profile in policy.profiles:
        if profile.name == wanted:
            return profile
    place = policy.path or "the built-in policy"
    listed = ", ".join(names)
    if name:
        raise PolicyError(f"{place} has no profile {name!r}; it has {listed}", fix=f"--profile {names[0]}")
    raise PolicyError(
        f"{place} has several profiles and none is named default: {listed}", fix=f"--profile {names[0]}"
    )


def _check(values: _Values, reader: Reader) -> None:
    """What is wrong only together. A value that could not be read is BAD, and nothing is said of it."""
    egress = values.get("defaults", {}).get("egress", fields.EGRESS.default)
    if "profile" in values and not values["profile"] and not reader.problems:
        reader.say(("profile",), "no profile", "at least one", "write `[profile.default]`")
    for name, profile in values.get("profile", ()):
        path: Path = ("profile", name)
        if profile.get("allow") and profile.get("egress", egress) == "none":
            reader.say(
                (*path, "allow"),
                'hosts with egress = "none", where they have no effect',
                'an allow-list with egress = "proxy" or "bridge"',
                'write `egress = "proxy"`, or remove allow',
            )
        if profile.get("write") and profile.get("workdir_mode", "rw") == "rw":
            reader.say(
                (*path, "write"),
                "write roots of a read-write work directory, where they have no effect",
                'write roots with workdir_mode = "ro"',
                'write `workdir_mode = "ro"`, or remove write',
            )
        _check_names(profile, path, reader)
        for number, mount in enumerate(profile.get("mount", ())):
            _check_mount(mount, (*path, "mount", number), reader)


def _check_mount(mount: _Values, path: Path, reader: Reader) -> None:
    if mount.get("write") and mount.get("mode") == "rw":
        reader.say(
            (*path, "write"),
            "write roots of a read-write source, where they have no effect",
            'write roots with mode = "ro"',
            'write `mode = "ro"`, or remove write',
        )
    if mount.get("create") and "write" not in mount:
        reader.say(
            (*path, "create"),
            "create without write: a missing source is never made",
            "create with write roots",
            "name the write roots in write, or remove create",
        )


def _check_names(profile: _Values, path: Path, reader: Reader) -> None:
    """Each variable has one origin, and no secret stands in the file."""
    env = profile.get("env", ())
    secrets = [_secret(secret).name if secret else "" for secret in profile.get("secrets", ())]
    origins: list[tuple[str, Path]] = [(name, ("secrets", n)) for n, name in enumerate(secrets)]
    origins += [(name, ("pass_env", n)) for n, name in enumerate(profile.get("pass_env", ()))]
    origins += [(name, ("env", name)) for name, _ in env]
    seen: dict[str, str | int] = {}
    for name, where in origins:
        if name and name in seen:
            reader.say(
                (*path, *where),
                f"{name}, which stands in {seen[name]} already",
                "one origin for each variable",
                "keep one of them",
            )
        seen.setdefault(name, where[0])
    for name, value in env:
        if value and checks.looks_secret(name, value):
            reader.say(
                (*path, "env", name),
                "a secret written in the file",
                "plain values only",
                f'write `secrets = ["{name}"]` instead, and set {name} where bawn is started',
            )


def _build(values: _Values, path: str, sha256: str) -> Policy:
    """The values with every default filled in."""
    wall = Wall(**values.get("wall", {}))
    outbound = Outbound(**values.get("outbound", {}))
    defaults = values.get("defaults", {})
    made = tuple(_profile(name, own, defaults) for name, own in values["profile"])
    return Policy(path, sha256, made, wall, outbound)


def _profile(name: str, own: _Values, defaults: _Values) -> Profile:
    path: Path = ("profile", name)
    mask = defaults.get("mask", DEFAULT_MASK)
    given = {**_PLAIN, **_INHERITED, "mask": mask, **defaults, **own}
    given["limits"] = Limits()._replace(**{**defaults.get("limits", {}), **own.get("limits", {})})
    given["secrets"] = tuple(map(_secret, own.get("secrets", ())))
    given["mounts"] = tuple(
        Mount(**{**_MOUNT, "mask": mask, **row}, place=_place((*path, "mount", n)))
        for n, row in enumerate(given.pop("mount"))
    )
    given["overrides"] = tuple(
        Override(**row, place=_place((*path, "override", n))) for n, row in enumerate(given.pop("override"))
    )
    return Profile(name=name, place=_place(path), **given)


def _secret(value: Any) -> Secret:
    return Secret(value) if isinstance(value, str) else Secret(value["name"], value["file"])


def _place(path: Path) -> Place:
    """Its line is looked up when it is shown (`lines.with_line`), never on the way to a run."""
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)[1:]
    return Place(0, field)


def _defaults(table: tuple[Field, ...]) -> _Values:
    """What the table says, as values; None is what is taken from [defaults]."""
    return {
        field.name: () if field.default in ([], {}) else field.default
        for field in table
        if field.default is not REQUIRED and field.default is not None
    }


_PLAIN, _MOUNT = _defaults(fields.PROFILE), _defaults(fields.MOUNT)
_INHERITED = {field.name: field.default for field in (fields.ENGINE, fields.EGRESS, fields.IMAGE)}
