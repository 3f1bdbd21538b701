"""`plan.sarif`: valid SARIF 2.1.0, checked against the parts of its schema that are used."""

import json
from pathlib import Path
from string import Formatter
from typing import Any

import jsonschema
import pytest

from bawn.plan.model import Finding
from bawn.plan.rules import RULES, finding
from bawn.plan.sarif import sarif
from tests.unit.mount_world import World, mount

# Cut by hand from sarif-schema-2.1.0.json (OASIS): required properties, types and enumerations.
MESSAGE = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string", "minLength": 1}},
    "additionalProperties": False,
}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"enum": ["2.1.0"]},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "additionalProperties": False,
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "additionalProperties": False,
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "additionalProperties": False,
                                "properties": {
                                    "name": {"type": "string"},
                                    "version": {"type": "string"},
                                    "semanticVersion": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "additionalProperties": False,
                                            "properties": {
                                                "id": {"type": "string"},
                                                "name": {"type": "string"},
                                                "shortDescription": MESSAGE,
                                                "fullDescription": MESSAGE,
                                                "defaultConfiguration": {
                                                    "type": "object",
                                                    "properties": {"level": LEVEL},
                                                },
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "additionalProperties": False,
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": LEVEL,
                                "message": MESSAGE,
                                "locations": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "additionalProperties": False,
                                        "properties": {
                                            "physicalLocation": {
                                                "type": "object",
                                                "required": ["artifactLocation"],
                                                "properties": {
                                                    "artifactLocation": {
                                                        "type": "object",
                                                        "required": ["uri"],
                                                        "properties": {
                                                            "uri": {
                                                                "type": "string",
                                                                "pattern": "^[!-~]+$",
                                                            }
                                                        },
                                                    },
                                                    "region": {
                                                        "type": "object",
                                                        "properties": {
                                                            "startLine": {
                                                                "type": "integer",
                                                                "minimum": 1,
                                                            }
                                                        },
                                                    },
                                                },
                                            },
                                            "logicalLocations": {
                                                "type": "array",
                                                "items": {
                                                    "type": "object",
                                                    "properties": {"fullyQualifiedName": {"type": "string"}},
                                                },
                                            },
                                        },
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


def checked(findings: tuple[Finding, ...]) -> dict[str, Any]:
    data = sarif(findings, "0.1.0")
    jsonschema.validate(json.loads(json.dumps(data)), SCHEMA)
    return data


def test_no_finding_is_valid() -> None:
    assert checked(())["runs"][0]["results"] == []


def test_every_rule_is_valid() -> None:
    names = {name for row in RULES.values() for _, name, _, _ in Formatter().parse(row.fix) if name}
    fields = dict.fromkeys(names, "x")
    several = tuple(finding(rule, "/a b/é", "m", **fields) for rule in RULES)
    data = checked(several)
    assert [rule["id"] for rule in data["runs"][0]["tool"]["driver"]["rules"]] == sorted(RULES)
    for result in data["runs"][0]["results"]:
        rules = data["runs"][0]["tool"]["driver"]["rules"]
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]


@pytest.mark.parametrize(
    ("place", "uri", "line", "name"),
    [
        ("bawn.toml:12 profile.b.mount[0]", "bawn.toml", 12, "profile.b.mount[0]"),
        ("bawn.toml:3 profile.b.mount[0] write 'a/b'", "bawn.toml", 3, None),
        ("/home/u/my src/é:1 x", "file:///home/u/my%20src/%C3%A9%3A1%20x", None, None),
        ("/p q/bawn.toml:9 profile.b", "file:///p%20q/bawn.toml", 9, "profile.b"),
        ("profile.default.workdir", None, None, "profile.default.workdir"),
    ],
)
def test_places(place: str, uri: str | None, line: int | None, name: str | None) -> None:
    (result,) = checked((Finding("BWN201", "error", place, "m", "f"),))["runs"][0]["results"]
    (location,) = result["locations"]
    physical = location.get("physicalLocation", {})
    assert physical.get("artifactLocation", {}).get("uri") == uri
    assert physical.get("region", {}).get("startLine") == line
    if name:
        assert location["logicalLocations"][0]["fullyQualifiedName"] == name


def test_a_real_plan(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.file("v/.env.\udcff")
    world.socket("v/s\x1b")
    plan = world.plan(mount(world.path("v")), mount("gone"), mount("~"))
    results = checked(plan.findings)["runs"][0]["results"]
    assert {result["level"] for result in results} == {"error"}
    assert [result["ruleId"] for result in results] == [one.rule for one in plan.findings]
