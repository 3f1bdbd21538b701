"""Small images for tests: layers of any shape, an OCI layout around them."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

GOOD = {"etc/ssl/certs/ca-certificates.crt": b"-----BEGIN CERTIFICATE-----\n", "usr/bin/tool": b"#!/bin/sh\n"}
ENV = ["PATH=/usr/local/bin:/usr/bin"]


def member(name: str, kind: bytes = tarfile.REGTYPE, **more: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.mode = 0o755
    for key, value in more.items():
        setattr(info, key, value)
    return info


def tar(*members: tarfile.TarInfo, files: dict[str, bytes] | None = None) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in (files or {}).items():
            archive.addfile(member(name, size=len(data)), io.BytesIO(data))
        for info in members:
            archive.addfile(info, io.BytesIO(b"\0" * info.size) if info.isreg() else None)
    return out.getvalue()


def layout(
    directory: Path, *layers: bytes, config: dict[str, Any] | None = None, packed: bool = True, **top: Any
) -> Path:
    """An OCI layout of these plain tars at `directory`."""
    blobs = directory / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def put(data: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"digest": f"sha256:{digest}", "size": len(data)}

    diffs = [f"sha256:{hashlib.sha256(data).hexdigest()}" for data in layers]
    inner = {"Env": ENV, **(config or {})}
    made = {"os": "linux", "architecture": "amd64", "config": inner,
            "rootfs": {"type": "layers", "diff_ids": diffs}, **top}  # fmt: skip
    parts = [put(gzip.compress(data, 1, mtime=0) if packed else data) for data in layers]
    manifest = {"schemaVersion": 2, "config": put(json.dumps(made).encode()), "layers": parts}
    index = {"schemaVersion": 2, "manifests": [put(json.dumps(manifest).encode())]}
    (directory / "index.json").write_text(json.dumps(index))
    (directory / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return directory
