"""Random policies: what is allowed round-trips and suits the schema; what is not is a PolicyError."""

import json
import re
import tomllib
from typing import Any

import jsonschema
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bawn.errors import PolicyError
from bawn.policy import checks, fields
from bawn.policy.kinds import REQUIRED, Field, Kind
from bawn.policy.parse import parse_policy, select
from bawn.policy.schema import json_schema
from bawn.policy.show import show_profile
from tests.unit.test_policy_corpus import PROBLEM

SCHEMA = jsonschema.Draft202012Validator(json_schema())

NAMES = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,31}", fullmatch=True)
WORDS = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/$~"), min_size=1, max_size=8
)
PARTS = WORDS.filter(lambda word: word.strip(".") != "")
RELATIVE = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
PATHS = RELATIVE.flatmap(lambda path: st.sampled_from([f"/{path}", f"~/{path}", "/", "~", f"/{path}/"]))
PATTERNS = st.from_regex(r"/?(\*\*/)?[a-z.*?]{1,6}(/[a-z]{1,3})?/?", fullmatch=True).filter(
    lambda pattern: (
        any(part not in ("", ".") for part in pattern.split("/")) and ".." not in pattern.split("/")
    )
)
ENV_NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("HOME", "TMPDIR") and not name.startswith(("XDG_", "LD_", "SSL_", "PATH"))
)
PLAIN_NAMES = ENV_NAMES.map(lambda name: f"V{name}_NAME")
ONE_LINE = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=12).filter(
    lambda text: not re.match("sk-|gh|npm_|pypi|xox|AKIA|AIza|glpat|---", text)
)
HOSTS = st.from_regex(r"(\*\.)?[a-z]{1,5}\.[a-z]{2,5}(:[1-9][0-9]{0,3})?", fullmatch=True)
SIZES = st.integers(64, 2048).flatmap(
    lambda n: st.sampled_from([f"{n}MiB", f"{n}.5MiB", f"{n} MiB", n << 20])
)

LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "memory": SIZES,
        "tmp": SIZES,
        "home": SIZES,
        "cpus": st.integers(1, 64) | st.sampled_from([0.1, 1.5, 12.25]),
        "pids": st.integers(16, 99999),
        "open_files": st.integers(64, 99999),
        "time": st.integers(1, 86400) | st.sampled_from(["90s", "1.5h", "1d"]),
    },
)
READ_ONLY = st.fixed_dictionaries(
    {"source": PATHS, "write": st.lists(RELATIVE, min_size=1, max_size=2)},
    optional={"mode": st.just("ro"), "mask": st.lists(PATTERNS, max_size=3), "create": st.booleans()},
)
MOUNTS = READ_ONLY | st.fixed_dictionaries(
    {"source": PATHS}, optional={"mode": st.sampled_from(["ro", "rw"])}
)
SECRETS = st.lists(
    ENV_NAMES.map(lambda name: f"S{name}")
    | st.fixed_dictionaries({"name": ENV_NAMES.map(lambda name: f"F{name}"), "file": PATHS}),
    max_size=3,
    unique_by=lambda secret: secret if isinstance(secret, str) else secret["name"],
)
PROFILES = st.fixed_dictionaries(
    {},
    optional={
        "agent": st.sampled_from(fields.AGENTS),
        "command": st.lists(ONE_LINE, max_size=3),
        "workdir": PATHS | RELATIVE | st.just("."),
        "workdir_mode": st.sampled_from(["ro", "rw"]),
        "mask": st.lists(PATTERNS, max_size=3),
        "engine": st.sampled_from(["gvisor", "docker"]),
        "image": st.sampled_from(["host", "agent-base", "registry.test:5000/a/b:1@sha256:0"]),
        "egress": st.sampled_from(["none", "proxy", "bridge"]),
        "secrets": SECRETS,
        "credentials": st.lists(PATHS, max_size=2),
        "env": st.dictionaries(PLAIN_NAMES, ONE_LINE, max_size=3),
        "pass_env": st.lists(ENV_NAMES.map(lambda name: f"P{name}_NAME"), max_size=3, unique=True),
        "limits": LIMITS,
        "mount": st.lists(MOUNTS, max_size=3),
        "override": st.lists(
            st.fixed_dictionaries({"path": PATHS, "reason": st.just("a reason of some length")}), max_size=2
        ),
        "host_exec": st.lists(PATTERNS, max_size=2),
        "git_links": st.booleans(),
    },
)
WITH_HOSTS = st.builds(
    lambda profile, allow: {**profile, "egress": "proxy", "allow": allow},
    PROFILES,
    st.lists(HOSTS, max_size=3),
)
POLICIES = st.fixed_dictionaries(
    {
        "version": st.just(1),
        "profile": st.dictionaries(NAMES, PROFILES | WITH_HOSTS, min_size=1, max_size=2),
    },
    optional={
        "defaults": st.fixed_dictionaries(
            {},
            optional={
                "engine": st.sampled_from(["gvisor", "docker"]),
                "limits": LIMITS,
                "mask": st.lists(PATTERNS, max_size=2),
            },
        ),
        "wall": st.fixed_dictionaries(
            {}, optional={"deny": st.lists(st.ip_addresses().map(str), max_size=2)}
        ),
        "outbound": st.fixed_dictionaries(
            {},
            optional={
                "roots": st.lists(PATHS.filter(lambda path: not checks.outbound_root(path)), max_size=2),
                "max_size": st.integers(1, 1 << 40),
                "scan_secrets": st.booleans(),
            },
        ),
    },
)


def inline(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {inline(v)}" for k, v in value.items()) + " }"
    return str(value)


def written(data: dict[str, Any]) -> str:
    """As TOML: headers for tables, all else inline."""
    lines = []
    for key, value in data.items():
        if key != "profile":
            lines.append(f"{key} = {inline(value)}")
    for name, profile in data["profile"].items():
        lines.append(f"[profile.{name}]")
        lines += [f"{key} = {inline(value)}" for key, value in profile.items() if key != "mount"]
        if profile.get("mount") == []:
            lines.append("mount = []")
        for mount in profile.get("mount", []):
            lines.append(f"[[profile.{name}.mount]]")
            lines += [f"{key} = {inline(value)}" for key, value in mount.items()]
    return "\n".join(lines) + "\n"


@given(POLICIES)
def test_what_is_allowed_loads_and_is_shown_as_it_is(data: dict[str, Any]) -> None:
    text = written(data)
    assert tomllib.loads(text) == data
    policy = parse_policy(text, "/p/bawn.toml")
    assert [profile.name for profile in policy.profiles] == list(data["profile"])
    for profile in policy.profiles:
        wanted = data["profile"][profile.name]
        for name in ("command", "mask", "credentials", "pass_env", "allow"):
            if name in wanted:
                assert getattr(profile, name) == tuple(wanted[name])
        assert dict(profile.env) == wanted.get("env", {})
        assert [m.source for m in profile.mounts] == [m["source"] for m in wanted.get("mount", [])]
        assert select(parse_policy(show_profile(profile), "/p"), None) == profile
    assert SCHEMA.is_valid(data)
    assert parse_policy(text, "/p/bawn.toml") == policy


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["*", "ro", "$HOME/x", "2g", "../x", "\x1b[2J", "~root", "!x", "10.0.0.1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
).filter(lambda value: value is not None)


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """A policy in which one to three values, anywhere, are junk."""
    data: dict[str, Any] = draw(POLICIES)
    for _ in range(draw(st.integers(1, 3))):
        at: Any = data
        while True:
            key = draw(st.sampled_from([*(at if isinstance(at, dict) else range(len(at))), None]))
            if key is None or not isinstance(at[key], dict | list) or not at[key]:
                break
            at = at[key]
        junk = draw(JUNK)
        if isinstance(at, dict):
            at[key if key is not None else draw(st.sampled_from(["x", "mode", "mount", "profile", "\n"]))] = (
                junk
            )
        elif key is None:
            at.append(junk)
        else:
            at[key] = junk
    return data


def judged(text: str, data: dict[str, Any] | None = None) -> None:
    problems: tuple[str, ...] = ()
    try:
        parse_policy(text, "/p/bawn.toml", data)
    except PolicyError as error:
        problems = error.problems or ("none",)
    for problem in problems:
        assert PROBLEM.fullmatch(problem), problem
        assert problem.isprintable()
    assert problems or data is None or SCHEMA.is_valid(data)


@given(broken())
def test_what_is_broken_is_a_policy_error(data: dict[str, Any]) -> None:
    """And what the parser takes, the schema takes."""
    judged("", data)


@given(st.text())
@example("\ufeffversion = 1\n[profile.a]\n")
@example("version = 1\r[profile.a]")
@example("[" * 100_000)
@example("a." * 50_000 + "a = 1")
@example("x = " + "[" * 100_000)
@example("version = 1e400")
@example("x = [\n'\n" + "a." * 9_000)
@settings(deadline=2000)
def test_any_text(text: str) -> None:
    judged(text)


PIECES = (
    *["version = 1\n", "[profile.a]\n", "[[profile.a.mount]]\n", "[defaults]\n", "source = ", '"/x"', "'~'"],
    *["mask", "write", "limits", "memory", "1", "nan", "true", "2024-01-01"],
    *["\n", "\t", " ", "=", "[", "]", "{", "}", ",", '"""', "'''", '"', "#", ".", "\\", "\0", "\x1b"],
)
TOML_WORDS = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)


@given(TOML_WORDS)
@settings(max_examples=300)
def test_any_text_of_toml_words(text: str) -> None:
    judged(text)
    judged(f"version = 1\n[profile.a]\n{text}")


def walk(kind: Kind) -> list[Field]:
    inner = [field for child in (kind.item, kind.key) if child for field in walk(child)]
    return [*kind.fields, *inner, *(field for own in kind.fields for field in walk(own.kind))]


def test_the_table_is_sound() -> None:
    """Every example is allowed, every default too, and everything is explained."""
    for field in walk(fields.TOP):
        assert field.doc.endswith("."), field.name
        assert field.kind.allowed
        if field.kind.read and not field.kind.fields:
            field.kind.read(tomllib.loads(f"x = {field.kind.example}")["x"])
            if field.default not in (REQUIRED, None, ""):
                field.kind.read(field.default)
