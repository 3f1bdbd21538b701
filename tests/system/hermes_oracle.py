"""Run by Hermes' own interpreter: what its code makes of a home, as one line of JSON."""

import json
import logging

logging.disable(logging.CRITICAL)

import gateway.run  # type: ignore[import-not-found]  # noqa: E402, F401  # its import is the bridge
from gateway.platforms import base  # type: ignore[import-not-found]  # noqa: E402
from tools import credential_files, terminal_tool  # type: ignore[import-not-found]  # noqa: E402

config = terminal_tool._get_env_config()
mounts = [
    *credential_files.get_credential_file_mounts(),
    *credential_files.get_skills_directory_mount(),
    *credential_files.get_cache_directory_mounts(),
]
print("ORACLE", json.dumps({
    "terminal": config,
    "strict": base._media_delivery_strict_mode(),
    "recent": base._media_delivery_recency_seconds(),
    "roots": [str(root) for root in base._media_delivery_allowed_roots()],
    "mounts": sorted((mount["host_path"], mount["container_path"]) for mount in mounts),
}))  # fmt: skip
