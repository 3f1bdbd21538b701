"""The JSON Schema of `bawn.toml` (draft 2020-12), made from the table of fields. Pure.

What the parser takes, the schema takes. It refuses less: it does not know what several values mean
together, nor the bounds of a quantity that is written with a unit.
"""

from bawn.policy.fields import TOP
from bawn.policy.kinds import REQUIRED, Field, Kind
from bawn.typed import Any


def json_schema() -> dict[str, Any]:
    """For editors (taplo, Even Better TOML); `bawn check` knows the rest."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "bawn policy",
        **_of(TOP),
    }


def _of(kind: Kind) -> dict[str, Any]:
    if kind.fields and kind.read:
        return {"anyOf": [kind.schema, _table(kind)]}
    if kind.fields:
        return _table(kind)
    if kind.item and kind.key:
        names = {name: value for name, value in kind.key.schema.items() if name != "type"}
        return {
            "type": "object",
            "propertyNames": names,
            "additionalProperties": _of(kind.item),
            **kind.schema,
        }
    if kind.item:
        return {"type": "array", "items": _of(kind.item)}
    return dict(kind.schema)


def _table(kind: Kind) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [field.name for field in kind.fields if field.default is REQUIRED],
        "properties": {field.name: _property(field) for field in kind.fields},
    }


def _property(field: Field) -> dict[str, Any]:
    inherited = " Default: that of [defaults]." if field.default is None else ""
    made = {"description": field.doc + inherited, **_of(field.kind)}
    if field.default is not REQUIRED and field.default not in (None, "", {}):
        made["default"] = field.default
    return made
