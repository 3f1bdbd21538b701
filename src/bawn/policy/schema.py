"""The JSON Schema of `bawn.toml` (draft 2020-12), made from the table of fields."""

from bawn.policy import fields
from bawn.policy.fields import REQUIRED, Field
from bawn.policy.model import VERSION
from bawn.typed import Any


def json_schema() -> dict[str, Any]:
    """For editors (taplo, Even Better TOML). It knows shapes; `bawn check` knows the rest."""
    limits = _object(fields.LIMITS)
    profile = _object(fields.PROFILE)
    profile["properties"] |= {
        "limits": limits,
        "mount": {"type": "array", "items": _object(fields.MOUNT)},
        "override": {"type": "array", "items": _object(fields.OVERRIDE)},
    }
    defaults = _object(fields.DEFAULTS)
    defaults["properties"]["limits"] = limits
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "bawn policy",
        "type": "object",
        "additionalProperties": False,
        "required": ["version", "profile"],
        "properties": {
            "version": {"const": VERSION, "description": "The version of this format."},
            "defaults": defaults,
            "wall": _object(fields.WALL),
            "profile": {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"pattern": "^[a-z0-9][a-z0-9_-]{0,31}$"},
                "additionalProperties": profile,
            },
            "outbound": _object(fields.OUTBOUND),
        },
    }


def _object(table: tuple[Field, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [field.name for field in table if field.default is REQUIRED],
        "properties": {field.name: _property(field) for field in table},
    }


def _property(field: Field) -> dict[str, Any]:
    made = {"description": field.doc, **field.kind.schema}
    if field.default is not REQUIRED and field.default != "":
        made["default"] = list(field.default) if isinstance(field.default, tuple) else field.default
    return made
