"""What an image must be to become a box's root file system: findings BWN75x. Pure."""

import re
from collections.abc import Mapping

from bawn.plan.layer import Entry
from bawn.plan.model import Finding
from bawn.plan.run_rules import Rule

IMAGE_RULES: dict[str, Rule] = {
    "BWN751": Rule(
        "error",
        "a layer that cannot be taken",
        "names that lead elsewhere, devices, doubled names and links to nothing are how a layer reaches "
        "the machine that unpacks it",
        "build it again with a common tool; where that is not yours, do not use it",
    ),
    "BWN752": Rule(
        "error",
        "a secret in the image's environment",
        "whoever has the image has it, and every command in the box",
        "build without it; give it as a secret of the profile",
    ),
    "BWN753": Rule(
        "error",
        "a PATH that others can fill",
        "a program that an agent wrote would run in place of the one that was meant",
        "PATH of absolute directories outside /tmp, /home and the like",
    ),
    "BWN754": Rule(
        "error",
        "no CA bundle",
        "no client could tell the provider from somebody else",
        "install ca-certificates in the image, or --accept BWN754 for one that needs no TLS",
    ),
    "BWN755": Rule(
        "error",
        "volumes of the image's own",
        "what is written there is in no plan",
        "build it without VOLUME",
    ),
    "BWN756": Rule(
        "note",
        "setuid, setgid or file capabilities",
        "no program in a box may gain rights; these were left out",
        "none",
    ),
    "BWN757": Rule("note", "another user", "a box runs as 1000:1000, whatever the image says", "none"),
    "BWN758": Rule("note", "device files", "the engine makes its own /dev; these were left out", "none"),
    "BWN759": Rule(
        "warning",
        "a file that looks like a key",
        "an agent in the box can read it",
        "build without it",
    ),
    "BWN760": Rule(
        "error",
        "another machine's image",
        "its programs do not run here",
        "take the image for {wanted}",
    ),
    "BWN761": Rule(
        "error",
        "a place the box needs for itself",
        "the box mounts there, and a link or a file is in the way",
        "make it a directory in the image",
    ),
}
ACCEPTABLE = ("BWN754",)
BUNDLES = ("etc/ssl/certs/ca-certificates.crt", "etc/pki/tls/certs/ca-bundle.crt", "etc/ssl/cert.pem")
_PLACES = ("proc", "sys", "dev", "run", "tmp", "var", "var/tmp", "home", "home/agent")
_OPEN = ("/tmp", "/var/tmp", "/home", "/dev", "/proc", "/run", "/mnt")
_SECRET = re.compile(
    r"(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH)(_|$)", re.I
)
_VALUE = re.compile(r"://[^/@\s:]*:[^/@\s]+@|\b(sk-|ghp_|github_pat_|glpat-|xox[bap]-|AKIA)[A-Za-z0-9_-]{8,}")
_KEYS = re.compile(
    r"(^|/)(\.ssh/id_[a-z0-9_]+|\.netrc|\.npmrc|\.pypirc|\.git-credentials|\.aws/credentials|"
    r"\.docker/config\.json|\.env|\.kube/config)$"
)  # fmt: skip


def check(
    place: str, config: Mapping[str, object], machine: str, entries: Mapping[str, Entry]
) -> tuple[Finding, ...]:
    """An image's configuration (the inner one, OCI `config`, with `architecture` and `os` beside) and tree
    against the contract."""
    found: list[Finding] = []

    def add(rule: str, text: str, **values: str) -> None:
        found.append(image_finding(rule, place, text, **values))

    inner = config.get("config")
    inner = inner if isinstance(inner, dict) else {}
    wanted = f"linux/{machine}"
    here = f"{config.get('os')}/{config.get('architecture')}"
    if here != wanted:
        add("BWN760", f"the image is for {here}", wanted=wanted)
    for name, value in variables(inner).items():
        if value and (_SECRET.search(name) or _VALUE.search(value)):
            add("BWN752", f"the variable {name} of the image has a value")  # which is not repeated
    for directory in variables(inner).get("PATH", "/usr/bin").split(":"):
        parts = directory.split("/")
        if not directory.startswith("/") or ".." in parts or any(_below(directory, top) for top in _OPEN):
            add("BWN753", f"PATH of the image holds {directory!r}")
    if not any(path in entries for path in BUNDLES):
        add("BWN754", f"none of /{', /'.join(BUNDLES)}")
    if inner.get("Volumes"):
        add("BWN755", f"volumes: {', '.join(sorted(map(str, inner['Volumes'])))}")
    if inner.get("User") not in ("1000:1000", "1000"):
        add("BWN757", f"the image runs as {inner.get('User') or 'root'}")
    for path in _PLACES:
        if path in entries and entries[path].kind != "dir":
            add("BWN761", f"/{path} is a {entries[path].kind}")
    keys = [path for path, entry in entries.items() if entry.kind == "file" and _KEYS.search(path)]
    for path in sorted(keys)[:20]:
        add("BWN759", f"/{path}")
    return tuple(found)


def variables(inner: Mapping[str, object]) -> dict[str, str]:
    """The image's `Env`."""
    env = inner.get("Env")
    words = [str(word) for word in env] if isinstance(env, list) else []
    return {word.partition("=")[0]: word.partition("=")[2] for word in words}


def left_out(place: str, special: list[str], devices: list[str]) -> tuple[Finding, ...]:
    """What was taken away at unpacking, told in two lines."""
    rows = (("BWN756", special), ("BWN758", devices))
    return tuple(image_finding(rule, place, _few(paths)) for rule, paths in rows if paths)


def image_finding(rule: str, place: str, text: str, **values: str) -> Finding:
    row = IMAGE_RULES[rule]
    fix = "" if row.fix == "none" else row.fix.format(**values)
    return Finding(rule, row.severity, place, text, fix)


def _few(paths: list[str]) -> str:
    shown = " ".join(f"/{path}" for path in sorted(paths)[:5])
    return f"{len(paths)}: {shown}" + (" ..." if len(paths) > 5 else "")


def _below(path: str, top: str) -> bool:
    return path == top or path.startswith(top + "/")
