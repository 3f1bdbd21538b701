"""Where an agent's program lies on this host, found by looking and never by running it.

Installers differ in where they put a link: npm, pnpm, yarn, bun, nvm, fnm, volta, asdf, mise, Homebrew,
the agents' own. All end at a program, native or JavaScript, in a package; the smallest directory that
must be visible in a box is that package, or the one file.
"""

import os
import re

from bawn.facts.model import AgentFact

# Where installers put programs, beside PATH. `*` is a version or a package; the newest counts.
PLACES = (
    "/usr/local/bin",
    "/usr/bin",
    "~/.local/bin",
    "~/.npm-global/bin",
    "~/.nvm/versions/node/*/bin",
    "~/.local/share/fnm/node-versions/*/installation/bin",
    "~/.volta/tools/image/packages/*/*/bin",
    "~/.asdf/installs/nodejs/*/bin",
    "~/.nodenv/versions/*/bin",
    "~/.local/share/mise/installs/*/*/bin",
    "~/.bun/bin",
    "~/n/bin",
    "/home/linuxbrew/.linuxbrew/bin",
)
# Trees of packages whose links are shell scripts, so that only the package itself tells.
TREES = (
    "~/.claude/local/node_modules",
    "~/.local/share/pnpm/global/*/node_modules",
    "~/.config/yarn/global/node_modules",
)
PACKAGES = {"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex"}
# The native program of a package: in it, below it or hoisted beside it; shortest (not musl) first.
NATIVE = {
    "claude": (
        "bin/claude.exe",  # a link to the one below, or a text where npm ran with --ignore-scripts
        "node_modules/@anthropic-ai/claude-code-linux-*/claude",
        "../claude-code-linux-*/claude",
    ),
    "codex": (
        "node_modules/@openai/codex-linux-*/vendor/*/bin/codex",
        "../codex-linux-*/vendor/*/bin/codex",
        "vendor/*/codex/codex",  # before 0.50 or so
    ),
}
# Programs that choose a version when they run: their links lead to themselves, not to the agent.
SHIMS = frozenset({"volta-shim", "mise", "rtx", "asdf", "proto-shim", "snap"})
SHELLS = frozenset({"bash", "dash", "fish", "ksh", "ksh93", "mksh", "sh", "tcsh", "zsh"})
_PACKAGE = re.compile(r"(.*/node_modules/(?:@[^/]+/)?[^/]+)/")
_PREFIX = re.compile(r"^\s*prefix\s*=\s*[\"']?(.+?)[\"']?\s*$", re.MULTILINE)


def find(name: str, home: str, path: str | None = None, uid: int | None = None) -> AgentFact:
    """The program `name`; `executable` is "" where it is not found, `searched` says where.

    `home` and `uid` are the invoker's, `path` a PATH value (None: of the environment).
    """
    if name == "shell":
        shell = login_shell(os.getuid() if uid is None else uid)
        return AgentFact(name, shell, (), (shell,))
    path = os.environ.get("PATH", "") if path is None else path
    searched: list[str] = []
    for directory in _directories(home, path):
        searched.append(directory)
        fact = _inspect(name, f"{directory}/{name}", home, path)
        if fact:
            return fact
    for tree in _expand(TREES, home):
        searched.append(tree)
        fact = _native(name, os.path.realpath(f"{tree}/{PACKAGES.get(name, name)}"))
        if fact:
            return fact
    return AgentFact(name, "", (), (), tuple(searched))


def on_path(name: str) -> bool:
    """Is there a program of that name for this user? The quick question of `bawn init`."""
    return bool(find(name, os.path.expanduser("~")).executable)


def login_shell(uid: int) -> str:
    """The person's own shell where it is one and lies below /usr; else /bin/sh."""
    import pwd

    try:
        shell = pwd.getpwuid(uid).pw_shell
    except KeyError:
        return "/bin/sh"
    known = os.path.basename(shell) in SHELLS and os.access(shell, os.X_OK)
    return shell if known and os.path.realpath(shell).startswith("/usr/") else "/bin/sh"


def npm_prefix(npmrc: str, home: str) -> str:
    """The `prefix` of an .npmrc's text; "" where it has none. The file holds tokens too: no other
    line of it is kept."""
    found = _PREFIX.findall(npmrc)
    if not found:
        return ""
    value = found[-1].replace("${HOME}", home)
    value = home + value[1:] if value.startswith("~/") else value
    return value if value.startswith("/") else ""


def _directories(home: str, path: str) -> list[str]:
    found = [d for d in path.split(":") if d.startswith("/")]
    try:
        with open(f"{home}/.npmrc", errors="replace") as file:
            prefix = npm_prefix(file.read(1 << 16), home)
    except OSError:
        prefix = ""
    return list(dict.fromkeys([*found, *([f"{prefix}/bin"] if prefix else []), *_expand(PLACES, home)]))


def _expand(places: tuple[str, ...], home: str) -> list[str]:
    from glob import escape, glob

    found: list[str] = []
    for place in places:
        pattern = escape(home) + place[1:] if place.startswith("~") else place
        plain = home + place[1:] if place.startswith("~") else place
        found += sorted(glob(pattern), key=_version, reverse=True) if "*" in place else [plain]
    return found


def _version(path: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", path))


def _inspect(name: str, candidate: str, home: str, path: str) -> AgentFact | None:
    """What a link on PATH leads to; None for what is no program, or a shim whose choice lies elsewhere."""
    if not (os.path.isfile(candidate) and os.access(candidate, os.X_OK)):
        return None
    real = os.path.realpath(candidate)
    if os.path.basename(real) in SHIMS:
        return None
    kind = _kind(real)
    if kind == "native":
        return _fact(name, (real,), _root(real))
    package = _PACKAGE.match(real)
    if package:
        native = _native(name, package[1])
        if native:
            return native
    if kind == "node" and package:
        node = _node(real, home, path)
        return _fact(name, (node, real), package[1], node) if node else None
    return None


def _native(name: str, package: str) -> AgentFact | None:
    from glob import escape, glob

    for pattern in NATIVE.get(name, ()):
        for found in sorted(glob(f"{escape(package)}/{pattern}"), key=lambda p: (len(p), p)):
            real = os.path.realpath(found)
            if os.access(real, os.X_OK) and _kind(real) == "native":
                return _fact(name, (real,), _root(real))
    return None


def _root(program: str) -> str:
    """What a native program needs beside it: the package it is in, or nothing but itself."""
    above = os.path.dirname(os.path.dirname(program))
    if os.path.exists(f"{above}/codex-package.json"):  # Codex's own installer: bin, helpers, this file
        return above
    match = _PACKAGE.match(program)
    return match[1] if match else program


def _fact(name: str, argv: tuple[str, ...], *mounts: str) -> AgentFact:
    open_to_all = [p for p in (*argv, *mounts) if os.stat(p).st_mode & 0o002]
    return AgentFact(
        name, argv[-1], tuple(sorted(set(mounts))), argv, (), open_to_all[0] if open_to_all else ""
    )


def _kind(path: str) -> str:
    try:
        with open(path, "rb") as file:
            head = file.read(64)
    except OSError:
        return ""
    if head.startswith(b"\x7fELF"):
        return "native"
    return "node" if head.startswith(b"#!") and b"node" in head.split(b"\n")[0] else ""


def _node(script: str, home: str, path: str) -> str:
    """The node that belongs to this script: of its own installation, else the first one to be found.

    The program alone: node carries its library in itself.
    """
    beside = script.partition("/lib/node_modules/")[0] + "/bin"
    for directory in (beside, *_directories(home, path)):
        real = os.path.realpath(f"{directory}/node")
        if os.path.basename(real) not in SHIMS and os.access(real, os.X_OK) and _kind(real) == "native":
            return real
    return ""
