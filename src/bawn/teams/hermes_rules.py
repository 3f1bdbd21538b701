"""What is wrong with a Hermes profile. `docs/team.md` shows this table (a test holds it to it). Pure."""

from collections.abc import Iterator, Mapping

from bawn.plan.model import Finding
from bawn.plan.run_rules import Rule
from bawn.teams.hermes import CONFIG, DEFAULT, MANAGED, HermesHome, Mount, Setting

RULES: dict[str, Rule] = {
    "BWN950": Rule(
        "error", "a config.yaml that Hermes cannot read", "nothing that it hardens is in force", "mend it"
    ),
    "BWN951": Rule(
        "error",
        "tools on the host",
        "what the profile's user can read, its tools can",
        "bawn team harden hermes",
    ),
    "BWN952": Rule(
        "error", "a container with a network", "what its tools read can leave", "bawn team harden hermes"
    ),
    "BWN953": Rule(
        "warning",
        "a container that is used again",
        "state stays, and changed mounts are not seen: Hermes finds it by its label",
        "bawn team harden hermes, then remove the old container",
    ),
    "BWN954": Rule(
        "error",
        "a mount that holds everything",
        "the container is only as narrow as its mounts",
        "mount the vaults themselves",
    ),
    "BWN955": Rule(
        "error",
        "a gateway that sends any file",
        "a path in a reply or a summary is an upload of that file",
        "bawn team harden hermes",
    ),
    "BWN956": Rule(
        "error",
        "recent files are trusted",
        "what a tool has just written or touched is sent, from any place",
        "bawn team harden hermes",
    ),
    "BWN957": Rule(
        "error",
        "an allowed directory that holds everything",
        "strict mode lets out what lies in it",
        "allow the directories of results alone",
    ),
    "BWN958": Rule(
        "warning", "a mount that Hermes adds", "no setting switches it off", "keep secrets out of it"
    ),
    "BWN959": Rule(
        "warning", "a directory that is replaced", "the tools work elsewhere", "use a path of the container"
    ),
    "BWN960": Rule(
        "warning",
        "set outside of config.yaml",
        "whoever writes that layer decides",
        "bawn team harden hermes writes it into config.yaml, which wins",
    ),
    "BWN961": Rule(
        "error", "a key twice", "Hermes takes the last one, a person reads the first", "keep one of them"
    ),
    "BWN962": Rule(
        "error",
        "extra docker arguments",
        "they can undo network, mounts and capabilities",
        "bawn team harden hermes",
    ),
    "BWN963": Rule(
        "warning", "variables given to the container", "its tools can read them", "take the secrets out"
    ),
    "BWN964": Rule(
        "error", "a value that Hermes cannot use", "what counts instead is not what is written", "mend it"
    ),
    "BWN965": Rule(
        "note",
        "a writable mount",
        "a shell writes anywhere in it, whatever limit the agent is told",
        "mount it :ro, and its write roots beside it",
    ),
    "BWN966": Rule(
        "error", "a managed config.yaml that Hermes cannot read", "what it pins is not in force", "mend it"
    ),
}

# What a running skill registers comes on top: it cannot be read from files.
_NO_SWITCH = ("automatic: skills", "automatic: caches", "automatic: credential_files")


def findings(
    home: HermesHome, settings: Mapping[str, Setting], mounts: list[Mount], user: str
) -> list[Finding]:
    """Everything, in the order of the rules. `user` is the home directory of the gateway's user."""
    return sorted(_all(home, settings, mounts, user), key=lambda one: one.rule)


def _one(rule: str, home: HermesHome, message: str) -> Finding:
    row = RULES[rule]
    return Finding(rule, row.severity, f"{home.profile}: {home.home}/config.yaml", message, row.fix)


def _all(
    home: HermesHome, settings: Mapping[str, Setting], mounts: list[Mount], user: str
) -> Iterator[Finding]:
    value = {key: setting.value for key, setting in settings.items()}
    if home.wrong:
        yield _one("BWN950", home, home.wrong)
    if home.managed_wrong:
        yield _one("BWN966", home, home.managed_wrong)
    for key in home.doubles:
        yield _one("BWN961", home, f"{key} stands there twice")
    for setting in settings.values():
        if setting.key == "terminal.cwd" and setting.wrong:
            yield _one("BWN959", home, setting.wrong)
        elif setting.wrong:
            yield _one("BWN964", home, f"{setting.key}: {setting.wrong}")
        if setting.layer not in (CONFIG, MANAGED, DEFAULT):
            yield _one("BWN960", home, f"{setting.key} = {_shown(setting)} comes from the {setting.layer}")
    yield from _gateway(home, value, user)
    if value["terminal.backend"] != "docker":
        yield _one("BWN951", home, f"terminal.backend is {value['terminal.backend']!r}")
        return
    yield from _container(home, value, mounts, user)


def _shown(setting: Setting) -> str:
    """Values of variables may be secrets: they are not shown."""
    return "***" if setting.key == "terminal.docker_env" else repr(setting.value)


def _gateway(home: HermesHome, value: Mapping[str, object], user: str) -> Iterator[Finding]:
    if not value["gateway.strict"]:
        yield _one("BWN955", home, "gateway.strict is off")
    if value["gateway.trust_recent_files"] and value["gateway.trust_recent_files_seconds"]:
        seconds = value["gateway.trust_recent_files_seconds"]
        yield _one("BWN956", home, f"gateway.trust_recent_files is on, for {seconds:g} s")
    dirs = value["gateway.media_delivery_allow_dirs"]
    for path in dirs if isinstance(dirs, list) else []:
        if _holds(path, user, home.home):
            yield _one("BWN957", home, f"{path} is allowed")
        elif not path.startswith(("/", "~")):
            yield _one(
                "BWN964", home, f"gateway.media_delivery_allow_dirs: {path!r} is relative, so it is ignored"
            )


def _container(
    home: HermesHome, value: Mapping[str, object], mounts: list[Mount], user: str
) -> Iterator[Finding]:
    if value["terminal.docker_network"]:
        yield _one("BWN952", home, "terminal.docker_network is on")
    for key in ("terminal.container_persistent", "terminal.docker_persist_across_processes"):
        if value[key]:
            yield _one("BWN953", home, f"{key} is on")
    if extra := value["terminal.docker_extra_args"]:
        yield _one("BWN962", home, f"terminal.docker_extra_args is {extra!r}")
    names = [*_words(value["terminal.docker_forward_env"]), *_words(value["terminal.docker_env"])]
    if names:
        yield _one("BWN963", home, f"given to the container: {', '.join(sorted(names))}")
    for mount in mounts:
        if _holds(mount.source, user, home.home):
            yield _one("BWN954", home, f"{mount.source} is mounted at {mount.target}")
        elif mount.origin in _NO_SWITCH:
            yield _one("BWN958", home, f"{mount.source} at {mount.target} ({mount.origin})")
        elif mount.writable and mount.origin != "automatic: container_persistent":  # BWN953 says so
            yield _one("BWN965", home, f"{mount.source} is writable at {mount.target}")


def _words(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | dict) else []


def _holds(path: str, *inside: str) -> bool:
    """`path` is one of these directories, or above one."""
    path = inside[0] + path[1:] if path == "~" or path.startswith("~/") else path
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return path.startswith("/") and any(
        [part for part in one.split("/") if part][: len(parts)] == parts for one in inside
    )
