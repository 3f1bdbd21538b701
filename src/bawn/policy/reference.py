"""Every field of a policy as Markdown, made from the table (`bawn policy fields`, docs/policy.md). Pure."""

from bawn.policy.fields import TOP
from bawn.policy.kinds import REQUIRED, Field, Kind, quoted
from bawn.typed import Any

_INHERITED = "that of `[defaults]`"


def reference() -> str:
    """One section a table of the file, in the order in which a person writes them."""
    return "\n".join(_section("", TOP)).strip() + "\n"


def _section(title: str, kind: Kind) -> list[str]:
    lines = ["", f"### {title}" if title else "### The file", ""]
    lines += ["| field | default | allowed | meaning |", "| --- | --- | --- | --- |"]
    lines += [_row(field) for field in kind.fields]
    for field in kind.fields:
        inner, name = _inner(field, title.strip("[]`"))
        if inner:
            lines += _section(f"`{name}`", inner)
    return lines


def _row(field: Field) -> str:
    cells = (f"`{field.name}`", _default(field), field.kind.allowed, field.doc)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(field: Field) -> str:
    if field.default is REQUIRED:
        return "required"
    if field.default is None:
        return _INHERITED
    return f"`{_toml(field.default)}`" if field.default not in ("", {}) else ""


def _inner(field: Field, outer: str) -> tuple[Kind | None, str]:
    """The table that a field holds, and how its header is written; limits are shown once."""
    name = f"{outer}.{field.name}" if outer else field.name
    kind = field.kind
    if field.name == "limits" and outer != "defaults":
        return None, ""
    if kind.key and kind.item and kind.item.fields:
        return kind.item, f"[{name}.NAME]"
    if kind.item and kind.item.fields and not kind.item.read:
        return kind.item, f"[[{name}]]"
    return (kind, f"[{name}]") if kind.fields else (None, "")


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return str(value)
