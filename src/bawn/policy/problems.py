"""Problems of a policy as lines that a person reads. Pure; imported only when there is one.

Each is `PATH:LINE: FIELD: got VALUE (WHY NOT); allowed: WHAT; fix: WHAT TO WRITE`.
"""

from bawn.policy.checks import HERE
from bawn.policy.kinds import Field, Kind, nearest, quoted
from bawn.policy.lines import line_of
from bawn.policy.reader import Path, Problem
from bawn.policy.units import NotAllowed
from bawn.typed import Any

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_WIDTH = 60


def of_value(kind: Kind, value: Any, path: Path, error: NotAllowed) -> Problem:
    """A value that its kind does not allow."""
    got = "a value that is not shown" if kind.private else shown(value)
    return Problem(path, _because(got, error), kind.allowed, error.fix or _fix(kind, path, error))


def _fix(kind: Kind, path: Path, error: NotAllowed) -> str:
    if not path:
        return "write it anew: bawn init"
    key = path[-1]
    if kind.private or not error.instead:
        example = kind.example if isinstance(key, int) else assignment(key, kind)
        return f"correct{' or remove' if isinstance(key, int) else ''} it, as in `{example}`"
    return f"write `{error.instead}`" if isinstance(key, int) else f"write `{bare(key)} = {error.instead}`"


def of_missing(field: Field, path: Path) -> Problem:
    """A required field that is not there."""
    fix = f"add `{assignment(field.name, field.kind)}`"
    return Problem((*path, field.name), "nothing", field.kind.allowed, fix)


def assignment(key: str, kind: Kind) -> str:
    """The example of a kind as a line of a policy: `key = value`, or the header of a table."""
    is_header = kind.example.startswith("[") and '"' not in kind.example
    return kind.example if is_header else f"{bare(key)} = {kind.example}"


def of_name(key: Kind, name: str, path: Path, error: NotAllowed) -> Problem:
    """A key that a person chose, and may not have."""
    got = "a name that is not shown" if key.private else shown(name)
    return Problem(path, _because(got, error), key.allowed, error.fix or "rename or remove it")


def _because(got: str, error: NotAllowed) -> str:
    return f"{got} ({error})" if str(error) else got


def of_key(name: str, known: list[str], path: Path) -> Problem:
    """A key that the table does not have."""
    near = nearest(name, known)
    fix = f"did you mean {near}?" if near else "remove it"
    return Problem((*path, name), "an unknown key", ", ".join(known), fix)


def render(problems: list[Problem], text: str, path: str) -> tuple[str, ...]:
    """`path:line: field: got ...; allowed: ...; fix: ...`, in the order of the file."""
    here = quoted(path.rpartition("/")[0])[1:-1]
    path = _clean(path)
    rows = sorted((line_of(text, one.path), number, one) for number, one in enumerate(problems))
    return tuple(
        f"{path}:{line}: {dotted(one.path)}: got {one.got}; allowed: {one.allowed}; "
        f"fix: {one.fix.replace(HERE, here or HERE)}"
        for line, _, one in rows
    )


def syntax(error: Exception, text: str, path: str) -> str:
    """What tomllib found, in the same form. It says "(at line 3, column 7)" or "(at end of document)"."""
    message, _, at = str(error).rpartition(" (at ")
    words = at.replace(",", "").rstrip(")").split()
    known = len(words) > 1 and words[0] == "line" and words[1].isdigit()
    line = int(words[1]) if known else len(text.splitlines()) or 1
    place = f" (column {words[3]})" if known and len(words) > 3 else ""
    return (
        f"{_clean(path)}:{line}: syntax: got {_clean(message or str(error))}{place}; allowed: TOML 1.0; "
        f"fix: mend the line"
    )


def shown(value: Any) -> str:
    """A value as TOML, cut; what a table or a list holds is not shown."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(_cut(value))
    try:
        text = str(value)
    except ValueError:  # more digits than Python writes (sys.set_int_max_str_digits)
        text = "a huge number"
    return _cut(text)


def bare(key: str) -> str:
    """A key as TOML writes it."""
    return key if key and _BARE.issuperset(key) else quoted(key)


def dotted(path: Path) -> str:
    """("profile", "build", "mount", 0) is profile.build.mount[0]."""
    out = ""
    for part in path:
        name = f"[{part}]" if isinstance(part, int) else bare(_cut(part))
        out += f".{name}" if out and isinstance(part, str) else name
    return out or "the file"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."


def _clean(message: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in message)
