"""Findings as SARIF 2.1.0 (OASIS), for code-scanning pages and editors. Pure."""

import re

from bawn.plan.model import Finding
from bawn.plan.rules import RULES
from bawn.typed import Any

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_POLICY = re.compile(r"(.+?):([1-9][0-9]*) ((?:profile|defaults|wall|outbound)\b.*)", re.DOTALL)
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")


def sarif(findings: tuple[Finding, ...], version: str) -> dict[str, Any]:
    """One run of the tool `bawn` with every rule that was met, and a result for each finding."""
    rules = sorted({one.rule for one in findings})
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "bawn",
                        "version": version,
                        "semanticVersion": version,
                        "rules": [_rule(rule) for rule in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(one, rules.index(one.rule)) for one in findings],
            }
        ],
    }


def _rule(rule: str) -> dict[str, Any]:
    row = RULES.get(rule)
    if row is None:
        return {"id": rule}
    return {
        "id": rule,
        "name": "".join(word.capitalize() for word in row.title.split() if word.isalpha()) or rule,
        "shortDescription": {"text": row.title},
        "fullDescription": {"text": row.why},
        "defaultConfiguration": {"level": row.severity},
    }


def _result(one: Finding, index: int) -> dict[str, Any]:
    text = f"{one.message}. Fix: {one.fix}" if one.fix else one.message
    result: dict[str, Any] = {
        "ruleId": one.rule,
        "ruleIndex": index,
        "level": one.severity,
        "message": {"text": text},
    }
    location = _location(one.place)
    if location:
        result["locations"] = [location]
    return result


def _location(place: str) -> dict[str, Any]:
    """A place in the policy, a path on the host, or the name of a field."""
    found = _POLICY.fullmatch(place)
    if found:
        uri = ("file://" if found[1].startswith("/") else "") + _uri(found[1])
        return {
            "physicalLocation": {
                "artifactLocation": {"uri": uri},
                "region": {"startLine": int(found[2])},
            },
            "logicalLocations": [{"fullyQualifiedName": found[3]}],
        }
    if place.startswith("/"):
        return {"physicalLocation": {"artifactLocation": {"uri": "file://" + _uri(place)}}}
    return {"logicalLocations": [{"fullyQualifiedName": place}]} if place else {}


def _uri(path: str) -> str:
    """RFC 3986 path: every other byte percent-encoded."""
    data = path.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in data)
