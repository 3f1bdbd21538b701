"""The package list of an image, as CycloneDX 1.6 JSON. Pure.

By hand and not by cyclonedx-python-lib: what is said here is a name, a version, a purl and a digest,
which is less text than the calls would be, it is the same bytes for the same image (the library
draws a serial number and a time), and bawn stays without dependencies. A test holds it to the schema.
https://cyclonedx.org/docs/1.6/json/
"""

import base64
from collections.abc import Iterable, Mapping

from bawn.typed import Any


def sbom(
    name: str, digest: str, status: str, npm: Mapping[str, Any], present: Iterable[str], distro: str
) -> dict[str, Any]:
    """`status` is dpkg's, `npm` the `packages` of a package-lock.json, `present` those of its paths that
    are in the image, `digest` the image's own, `distro` the ID of its os-release."""
    components = [_deb(fields, distro) for fields in _stanzas(status)]
    components += [_npm(path, npm[path]) for path in present]
    unique = {component["bom-ref"]: component for component in components}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "container", "bom-ref": name, "name": name, "version": digest}},
        "components": [unique[ref] for ref in sorted(unique)],
    }


def _stanzas(status: str) -> list[dict[str, str]]:
    found = []
    for stanza in status.split("\n\n"):
        lines = [line for line in stanza.splitlines() if line[:1] not in (" ", "\t") and ":" in line]
        fields = {line.partition(":")[0]: line.partition(":")[2].strip() for line in lines}
        if fields.get("Status", "").endswith(" installed") and "Package" in fields and "Version" in fields:
            found.append(fields)
    return found


def _deb(fields: dict[str, str], distro: str) -> dict[str, Any]:
    name, version = fields["Package"], fields["Version"]
    purl = f"pkg:deb/{distro}/{_quote(name)}@{_quote(version)}?arch={fields.get('Architecture', 'all')}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _npm(path: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    name = str(entry.get("name") or path.rpartition("node_modules/")[2])
    version = str(entry.get("version", ""))
    purl = f"pkg:npm/{_quote(name)}@{_quote(version)}"
    component: dict[str, Any] = {
        "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
    }  # fmt: skip
    if "integrity" in entry:
        digest = base64.b64decode(str(entry["integrity"]).removeprefix("sha512-")).hex()
        component["hashes"] = [{"alg": "SHA-512", "content": digest}]
    return component


def _quote(text: str) -> str:
    """Percent-encoding as the purl specification has it: `/` between scope and name stays."""
    plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_~/:"
    return "".join(c if c in plain else "".join(f"%{b:02X}" for b in c.encode()) for c in text)
