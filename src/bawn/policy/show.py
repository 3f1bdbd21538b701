"""A profile as TOML with every field written out, defaults too. Pure."""

import json

from bawn.policy import units
from bawn.policy.model import Profile

_SHOW = {
    "memory": units.show_size,
    "tmp": units.show_size,
    "home": units.show_size,
    "time": units.show_duration,
}


def show_profile(profile: Profile) -> str:
    """Text that `parse_policy` reads back to the same profile (its place aside)."""
    lines = ["version = 1", "", f"[profile.{profile.name}]"]
    simple = ("agent", "command", "workdir", "workdir_mode", "write", "mask", "engine", "image",
              "egress", "allow", "credentials", "pass_env", "host_exec", "git_links")  # fmt: skip
    for name in simple:
        value = getattr(profile, name)
        if name == "agent" and not value:
            lines.append('# agent = ""')
        else:
            lines.append(f"{name} = {_value(value)}")
    secrets = [_inline(s._asdict()) if s.file else json.dumps(s.name) for s in profile.secrets]
    lines.append(f"secrets = [{', '.join(secrets)}]")
    lines.append(f"env = {_inline(dict(profile.env))}")
    lines += ["", f"[profile.{profile.name}.limits]"]
    for name, number in profile.limits._asdict().items():
        if name == "cpus":
            lines.append(f"cpus = {units.show_cpus(number)}")
        else:
            lines.append(f"{name} = {_value(_SHOW[name](number) if name in _SHOW else number)}")
    for mount in profile.mounts:
        lines += ["", f"[[profile.{profile.name}.mount]]"]
        lines += [f"{k} = {_value(v)}" for k, v in mount._asdict().items() if k != "place"]
    for override in profile.overrides:
        lines += ["", f"[[profile.{profile.name}.override]]"]
        lines += [f"{k} = {_value(v)}" for k, v in override._asdict().items() if k != "place"]
    return "\n".join(lines)


def _value(value: object) -> str:
    """Strings, integers, booleans and lists of strings are spelt the same in JSON and TOML."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


def _inline(table: dict[str, str]) -> str:
    return "{ " + ", ".join(f"{k} = {_value(v)}" for k, v in table.items()) + " }" if table else "{}"
