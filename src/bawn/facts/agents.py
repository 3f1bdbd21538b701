"""Where an agent's program lies on this host, found by looking and never by running it.

npm's global tree, ~/.local, nvm, fnm, volta and native installers all end in a link on PATH or in a
few known directories; the link is followed to the real file, and the smallest directory that must
be visible in a box is its package.
"""

import os
import re

from bawn.facts.model import AgentFact

# Where installers put links, beside PATH. `*` is a version; the newest counts.
PLACES = (
    "/usr/local/bin",
    "/usr/bin",
    "~/.local/bin",
    "~/.npm-global/bin",
    "~/.claude/local",
    "~/.nvm/versions/node/*/bin",
    "~/.local/share/fnm/node-versions/*/installation/bin",
    "~/.volta/bin",
    "~/.bun/bin",
    "/opt/homebrew/bin",
    "/home/linuxbrew/.linuxbrew/bin",
)
# A JavaScript launcher's own native program, below its package or hoisted beside it.
NATIVE = {
    "codex": (
        "node_modules/@openai/codex-*/vendor/*/bin/codex",
        "../codex-*/vendor/*/bin/codex",
        "vendor/*/codex/codex",
    )
}
_PACKAGE = re.compile(r"(.*/node_modules/(?:@[^/]+/)?[^/]+)/")


def find(name: str, home: str, path: str | None = None) -> AgentFact:
    """The program `name`; `executable` is "" where it is not found, `searched` says where."""
    if name == "shell":
        return AgentFact(name, "/bin/sh", (), ("/bin/sh",))
    searched: list[str] = []
    for directory in _directories(home, os.environ.get("PATH", "") if path is None else path):
        searched.append(directory)
        candidate = f"{directory}/{name}"
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            fact = _inspect(name, os.path.realpath(candidate), home)
            if fact:
                return fact
    return AgentFact(name, "", (), (), tuple(searched))


def on_path(name: str) -> bool:
    """Is there a program of that name for this user? The quick question of `bawn init`."""
    return bool(find(name, os.path.expanduser("~")).executable)


def _directories(home: str, path: str) -> list[str]:
    from glob import glob

    found = [d for d in path.split(":") if d.startswith("/")]
    for place in PLACES:
        pattern = home + place[1:] if place.startswith("~") else place
        found += sorted(glob(pattern), key=_version, reverse=True) if "*" in pattern else [pattern]
    return list(dict.fromkeys(found))


def _version(path: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", path))


def _inspect(name: str, real: str, home: str) -> AgentFact | None:
    from glob import glob

    match = _PACKAGE.match(real)
    package = match[1] if match else real
    kind = _kind(real)
    if kind == "native":
        return AgentFact(name, real, (package,), (real,))
    native = [p for pattern in NATIVE.get(name, ()) for p in sorted(glob(f"{package}/{pattern}"))]
    for program in map(os.path.realpath, native):
        top = _PACKAGE.match(program)
        mounts = {package, top[1] if top else package}
        return AgentFact(name, program, tuple(sorted(mounts)), (program,))
    if kind == "node":
        node = _node(real, home)
        if node:
            return AgentFact(name, real, tuple(sorted({package, _installation(node)})), (node, real))
    return None  # a shim that chooses a version at run time: what it would run lies further on


def _kind(path: str) -> str:
    try:
        with open(path, "rb") as file:
            head = file.read(64)
    except OSError:
        return ""
    if head.startswith(b"\x7fELF"):
        return "native"
    return "node" if head.startswith(b"#!") and b"node" in head.split(b"\n")[0] else ""


def _node(script: str, home: str) -> str:
    """The node that belongs to this script: of its own installation, else the first on PATH."""
    beside = script.partition("/lib/node_modules/")[0] + "/bin/node"
    for candidate in [
        beside,
        *(f"{d}/node" for d in _directories(home, os.environ.get("PATH", ""))),
    ]:
        real = os.path.realpath(candidate)
        if os.access(real, os.X_OK) and _kind(real) == "native":
            return real
    return ""


def _installation(node: str) -> str:
    """The version directory of a node below a home; the file itself elsewhere."""
    return os.path.dirname(os.path.dirname(node)) if node.endswith("/bin/node") else node
