"""Where this machine's npm, pip and apt fetch from: read from their own configuration, never assumed.

Only what belongs to the user and the machine counts. A `.npmrc` or virtual environment in a project
does not: an agent that may write there would otherwise say what `@npm` allows.
"""

import glob
import os
from collections.abc import Callable, Iterable, Mapping

from bawn.errors import HostError
from bawn.facts import package_config as config
from bawn.facts.model import RegistryFact
from bawn.facts.runner import Runner

_LIMIT = 1 << 20  # bytes of one file
_PIP_INDEX = (
    "/usr/local/lib/python3*/*-packages/pip/_internal/models/index.py",
    "/usr/lib/python3*/*-packages/pip/_internal/models/index.py",
)
_Found = list[tuple[str, str]]  # (URL, where it stands)


class Machine:
    """Files below `root` ("" but in tests), the environment and home of the user."""

    def __init__(self, home: str, environ: Mapping[str, str], run: Runner, root: str = "") -> None:
        self.home, self.environ, self.run, self.root = home, environ, run, root

    def text(self, path: str) -> str:
        """What a file says; "" where there is none, and for a relative path: it is some project's.

        Raises HostError for what cannot be read.
        """
        if not path.startswith("/"):
            return ""
        try:
            with open(self.root + path, "rb") as file:
                return file.read(_LIMIT).decode(errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError as error:
            raise HostError(f"cannot read {path}: {error.strerror}") from None

    def glob(self, pattern: str) -> list[str]:
        return sorted(path.removeprefix(self.root) for path in glob.glob(self.root + pattern))


def observe(lines: Iterable[str], machine: Machine) -> tuple[RegistryFact, ...]:
    """One fact for each line that is a group of a registry; what cannot be found is its `problem`, with
    the fix."""
    return tuple(_fact(line, machine) for line in lines if line in _CLIENTS)


def _fact(group: str, machine: Machine) -> RegistryFact:
    look, missing, fix = _CLIENTS[group]
    try:
        urls = look(machine)
    except HostError as error:
        return RegistryFact(group, (), (), error.message, error.fix or fix)
    found: dict[str, None] = {}
    places: dict[str, None] = {}
    wrong: dict[str, None] = {}
    for url, place in urls:
        host, why = config.host_of(url)
        if host:
            found[host] = places[place] = None
        elif why:
            wrong[f"{place}: {why}"] = None
    problem = "; ".join(wrong) or ("" if found else missing)
    return RegistryFact(group, tuple(found), tuple(places), problem, fix if problem else "")


def _npm(machine: Machine) -> _Found:
    """npm's order: environment, the user's file, the machine's. The registries of scopes count too."""
    env = {name.lower(): value for name, value in machine.environ.items()}
    default: _Found = []
    scoped: _Found = []
    if env.get("npm_config_registry"):
        default.append((env["npm_config_registry"], "$npm_config_registry"))
    files = [
        env.get("npm_config_userconfig") or f"{machine.home}/.npmrc",
        env.get("npm_config_globalconfig") or "",
        "/etc/npmrc",
        "/usr/etc/npmrc",
        "/usr/local/etc/npmrc",
    ]
    for path in filter(None, files):
        one, several = config.npmrc(machine.text(path), machine.environ)
        default += [(one, path)] if one else []
        scoped += [(url, path) for url in several]
    if not default:
        default.append((_ask_npm(machine.run), "npm config get registry"))
    return default[:1] + scoped


def _ask_npm(run: Runner) -> str:
    """The prefix keeps npm from reading a `.npmrc` of the working directory. Raises HostError."""
    answer = run(["npm", "--prefix", "/", "config", "get", "registry"], timeout=20)
    return answer.text.strip() if answer.code == 0 else ""


def _pip(machine: Machine) -> _Found:
    """pip's order: the machine's file, the user's, $PIP_CONFIG_FILE, the environment; the last wins."""
    env, home = machine.environ, machine.home
    own = env.get("XDG_CONFIG_HOME") or f"{home}/.config"
    files = ["/etc/xdg/pip/pip.conf", "/etc/pip.conf", f"{home}/.pip/pip.conf", f"{own}/pip/pip.conf"]
    chosen = env.get("PIP_CONFIG_FILE", "")
    files = [] if chosen == os.devnull else [*files, chosen]
    values: dict[str, _Found] = {}
    for path in filter(None, files):
        try:
            read = config.pip_conf(machine.text(path))
        except ValueError:
            raise HostError(f"pip's configuration {path} cannot be read", f"mend {path}") from None
        values.update({key: [(url, path) for url in urls] for key, urls in read.items()})
    for key in ("index-url", "extra-index-url", "find-links"):
        name = "PIP_" + key.upper().replace("-", "_")
        if env.get(name):
            values[key] = [(url, f"${name}") for url in env[name].split()]
    if not values.get("index-url"):
        values["index-url"] = _pip_built_in(machine)
    return [pair for pairs in values.values() for pair in pairs]


def _pip_built_in(machine: Machine) -> _Found:
    """What the machine's own pip says when nothing is configured, from its source."""
    for pattern in _PIP_INDEX:
        for path in machine.glob(pattern):
            urls = config.pip_built_in(machine.text(path))
            if urls:
                return [(url, path) for url in urls]
    raise HostError("pip has no index configured, and no pip of this machine names one")


def _apt(machine: Machine) -> _Found:
    found = [
        (uri, "/etc/apt/sources.list") for uri in config.sources_list(machine.text("/etc/apt/sources.list"))
    ]
    for path in machine.glob("/etc/apt/sources.list.d/*.list"):
        found += [(uri, path) for uri in config.sources_list(machine.text(path))]
    for path in machine.glob("/etc/apt/sources.list.d/*.sources"):
        found += [(uri, path) for uri in config.deb822(machine.text(path))]
    return found


# group -> how it is found, what to say when it is not, and what helps
_CLIENTS: dict[str, tuple[Callable[[Machine], _Found], str, str]] = {
    "@npm": (_npm, "npm names no registry", "npm config set registry URL, with a host's name in it"),
    "@pypi": (_pip, "pip names no index", "pip config set global.index-url URL, with a host's name in it"),
    "@debian": (_apt, "apt has no source on the net", "name one in /etc/apt/sources.list.d/NAME.sources"),
}
