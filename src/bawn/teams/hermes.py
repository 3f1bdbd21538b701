"""What a Hermes profile really gets: each setting, and the layer that set it. Pure.

Read in `hermes-agent` 0.19.0 (gateway/run.py, tools/terminal_tool.py, gateway/platforms/base.py). The
gateway bridges everything into its environment, and the last layer wins:

    environment < .env < managed .env < config.yaml < managed config.yaml

A key that config.yaml does not name keeps what an earlier layer gave; an empty allow list does too. A
config.yaml that is not YAML gives nothing at all: what it hardened is open then.
"""

import json
import re
from collections.abc import Mapping

from bawn.typed import Any, NamedTuple

DEFAULT, ENVIRONMENT, DOTENV, MANAGED_ENV = "default", "environment", ".env", "managed .env"
CONFIG, MANAGED = "config.yaml", "managed config.yaml"


class HermesHome(NamedTuple):
    """One profile as it lies there. Texts are None where there is no file; `config` and `managed` are
    what YAML 1.1 makes of them, `wrong` says why config.yaml is none; `present` are the directories
    and files below `home` that Hermes mounts by itself."""

    profile: str
    home: str
    config: Any = None
    wrong: str = ""
    doubles: tuple[str, ...] = ()
    dotenv: str | None = None
    managed: Any = None
    managed_wrong: str = ""
    managed_env: str | None = None
    present: tuple[str, ...] = ()


class Row(NamedTuple):
    """A setting: its key, the variable it is bridged to, the default as that variable's text."""

    key: str
    variable: str
    default: str
    kind: str  # text, json, number, flag


ROWS = (
    Row("terminal.backend", "TERMINAL_ENV", "local", "text"),
    Row("terminal.cwd", "TERMINAL_CWD", "", "text"),
    Row(
        "terminal.docker_image", "TERMINAL_DOCKER_IMAGE", "nikolaik/python-nodejs:python3.11-nodejs20", "text"
    ),
    Row("terminal.docker_volumes", "TERMINAL_DOCKER_VOLUMES", "[]", "json"),
    Row("terminal.docker_forward_env", "TERMINAL_DOCKER_FORWARD_ENV", "[]", "json"),
    Row("terminal.docker_env", "TERMINAL_DOCKER_ENV", "{}", "json"),
    Row("terminal.docker_extra_args", "TERMINAL_DOCKER_EXTRA_ARGS", "[]", "json"),
    Row("terminal.docker_network", "TERMINAL_DOCKER_NETWORK", "true", "flag"),
    Row("terminal.docker_mount_cwd_to_workspace", "TERMINAL_DOCKER_MOUNT_CWD_TO_WORKSPACE", "false", "flag"),
    Row("terminal.docker_run_as_host_user", "TERMINAL_DOCKER_RUN_AS_HOST_USER", "false", "flag"),
    Row("terminal.container_cpu", "TERMINAL_CONTAINER_CPU", "1", "number"),
    Row("terminal.container_memory", "TERMINAL_CONTAINER_MEMORY", "5120", "number"),
    Row("terminal.container_disk", "TERMINAL_CONTAINER_DISK", "51200", "number"),
    Row("terminal.container_persistent", "TERMINAL_CONTAINER_PERSISTENT", "true", "flag"),
    Row(
        "terminal.docker_persist_across_processes", "TERMINAL_DOCKER_PERSIST_ACROSS_PROCESSES", "true", "flag"
    ),
    Row("gateway.strict", "HERMES_MEDIA_DELIVERY_STRICT", "0", "flag"),
    Row("gateway.media_delivery_allow_dirs", "HERMES_MEDIA_ALLOW_DIRS", "", "dirs"),
    Row("gateway.trust_recent_files", "HERMES_MEDIA_TRUST_RECENT_FILES", "1", "flag"),
    Row("gateway.trust_recent_files_seconds", "HERMES_MEDIA_TRUST_RECENT_SECONDS", "", "seconds"),
)
_TERMINAL = sum(row.key.startswith("terminal.") for row in ROWS)
_PLACEHOLDERS = (".", "auto", "cwd")
_REFERENCE = re.compile(r"\$\{([^}]+)\}")
_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*)")


class Setting(NamedTuple):
    """A value as Hermes uses it; `wrong` where Hermes cannot."""

    key: str
    value: Any
    layer: str
    wrong: str = ""


def effective(home: HermesHome, environ: Mapping[str, str], user: str) -> dict[str, Setting]:
    """Every setting of `ROWS`, by its key. `environ` is that of the gateway, `user` its home."""
    env: dict[str, tuple[str, str]] = {name: (value, ENVIRONMENT) for name, value in environ.items()}
    for text, layer in ((home.dotenv, DOTENV), (home.managed_env, MANAGED_ENV)):
        for name, value in dotenv(text or "", {key: got for key, (got, _) in env.items()}).items():
            env[name] = (value, layer)
    flat = {name: value for name, (value, _) in env.items()}
    managed = _expand(home.managed, flat) if isinstance(home.managed, dict) else {}
    if isinstance(home.config, dict) and not home.wrong:
        config = _expand(home.config, flat)
        for source, layer in ((managed, MANAGED), (config, CONFIG)):
            for key, value in source.items():
                if isinstance(value, str | int | float | bool):
                    env.setdefault(str(key), (str(value), layer))
        for source, layer in ((config, CONFIG), (managed, MANAGED)):
            for row in ROWS:
                if (text := _bridged(source, row, user)) is not None:
                    env[row.variable] = (text, layer)
    if env.get("TERMINAL_CWD", ("",))[0] in ("", *_PLACEHOLDERS) and _backend(env) != "docker":
        env["TERMINAL_CWD"] = (user, DEFAULT)
    # No bridge: the terminal fills its own gaps later, the gateway does not.
    if (not isinstance(home.config, dict) or home.wrong) and "TERMINAL_ENV" not in env:
        for row in ROWS[:_TERMINAL]:
            if row.variable not in env and (text := _bridged(managed, row, user)) is not None:
                env[row.variable] = (text, MANAGED)
    return {row.key: _setting(row, *env.get(row.variable, (row.default, DEFAULT)), env) for row in ROWS}


def _backend(env: Mapping[str, tuple[str, str]]) -> str:
    return env.get("TERMINAL_ENV", ("local", ""))[0]


def dotenv(text: str, known: Mapping[str, str]) -> dict[str, str]:
    """KEY=VALUE lines as python-dotenv reads them: quotes, comments, ${NAME}; the last one wins."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if not match or line.lstrip().startswith("#"):
            continue
        name, value = match[1], match[2].strip()
        if value[:1] in "'\"" and value[:1] and (end := value.find(value[0], 1)) > 0:
            literal, value = value[0] == "'", value[1:end]
        else:
            literal, value = False, re.sub(r"\s+#.*", "", value).rstrip()
        found[name] = value if literal else _REFERENCE.sub(lambda m: {**known, **found}.get(m[1], ""), value)
    return found


def _expand(value: Any, env: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _REFERENCE.sub(lambda match: env.get(match[1], match[0]), value)
    if isinstance(value, dict):
        return {key: _expand(item, env) for key, item in value.items()}
    return [_expand(item, env) for item in value] if isinstance(value, list) else value


def _bridged(source: dict[str, Any], row: Row, user: str) -> str | None:
    """The text that the gateway puts into the variable; None where it leaves it alone."""
    section, _, key = row.key.partition(".")
    inner = source.get(section)
    if not isinstance(inner, dict) or key not in inner:
        return None
    value = inner[key]
    if section == "gateway":
        return _gateway(row, value)
    if key == "cwd" and str(value) in _PLACEHOLDERS:
        return None
    if key == "cwd" and isinstance(value, str) and (value == "~" or value.startswith("~/")):
        return user + value[1:]
    return json.dumps(value) if isinstance(value, list | dict) else str(value)


def _gateway(row: Row, value: Any) -> str | None:
    if row.kind == "dirs":
        text = value if isinstance(value, str) else ""
        if isinstance(value, list):
            text = ":".join(str(item) for item in value if item)
        return text or None
    if value is None:
        return None
    return ("1" if value else "0") if row.kind == "flag" else str(value)


def _setting(row: Row, text: str, layer: str, env: Mapping[str, tuple[str, str]]) -> Setting:
    low = text.strip().lower()
    if row.key == "gateway.strict":
        return Setting(row.key, low in ("1", "true", "yes", "on"), layer)
    if row.key == "gateway.trust_recent_files":
        return Setting(row.key, low not in ("0", "false", "no", "off", ""), layer)
    if row.kind == "seconds":
        try:
            return Setting(row.key, max(0.0, float(text)) if text.strip() else 600.0, layer)
        except ValueError:
            return Setting(row.key, 600.0, layer, f"{text!r} is no number: 600 counts")
    if row.kind == "dirs":
        dirs = [part.strip() for chunk in text.split(":") for part in chunk.split(",")]
        return Setting(row.key, [part for part in dirs if part], layer)
    if row.kind == "flag":
        return Setting(row.key, text.lower() in ("true", "1", "yes"), layer)
    if row.key == "terminal.cwd":
        return _cwd(text, layer, env)
    if row.kind == "text":
        return Setting(row.key, text, layer)
    try:
        value = json.loads(text) if row.kind == "json" else float(text)
    except ValueError:
        return Setting(
            row.key, text, layer, f"{text!r} cannot be read by Hermes: its terminal does not start"
        )
    return Setting(row.key, value, layer)


def _cwd(text: str, layer: str, env: Mapping[str, tuple[str, str]]) -> Setting:
    """Hermes replaces a directory that looks like the host's, and says so only in its log."""
    if _backend(env) != "docker":
        return Setting("terminal.cwd", text, layer)
    if not text or text in _PLACEHOLDERS:
        return Setting("terminal.cwd", "/root", layer)
    mounted = env.get("TERMINAL_DOCKER_MOUNT_CWD_TO_WORKSPACE", ("", ""))[0].lower() in ("true", "1", "yes")
    if mounted and text.startswith(("/home/", "/Users/")):
        return Setting("terminal.cwd", "/workspace", layer, f"{text} is mounted writable at /workspace")
    if not mounted and (text.startswith(("/home/", "/Users/", "C:")) or not text.startswith("/")):
        return Setting("terminal.cwd", "/root", layer, f"{text} is silently replaced by /root")
    return Setting("terminal.cwd", text, layer)


class Mount(NamedTuple):
    """One mount of the container; `origin` is the setting or what Hermes adds by itself."""

    source: str
    target: str
    writable: bool
    origin: str

    @property
    def automatic(self) -> bool:
        return self.origin.startswith("automatic")


_CACHES = {
    "document_cache": "documents",
    "image_cache": "images",
    "audio_cache": "audio",
    "video_cache": "videos",
    "browser_screenshots": "screenshots",
    "web_cache": "web",
    "delegation_cache": "delegation",
}
WATCHED = ("skills", *_CACHES, *(f"cache/{name}" for name in _CACHES.values()))


def mounts(home: HermesHome, settings: Mapping[str, Setting]) -> list[Mount]:
    """The mounts of the container as Hermes would start it, without what it registers while it runs."""
    found = []
    volumes = settings["terminal.docker_volumes"].value
    for volume in volumes if isinstance(volumes, list) else []:
        parts = str(volume).split(":")
        if len(parts) > 1:
            options = parts[2].split(",") if len(parts) > 2 else []
            found.append(Mount(parts[0], parts[1], "ro" not in options, "docker_volumes"))
    targets = {mount.target for mount in found}
    if settings["terminal.container_persistent"].value:
        boxes = f"{home.home}/sandboxes/docker/TASK"
        found.append(Mount(f"{boxes}/home", "/root", True, "automatic: container_persistent"))
        if "/workspace" not in targets:
            found.append(Mount(f"{boxes}/workspace", "/workspace", True, "automatic: container_persistent"))
    if settings["terminal.cwd"].wrong.endswith("at /workspace"):
        source = settings["terminal.cwd"].wrong.split(" is mounted")[0]
        found.append(Mount(source, "/workspace", True, "automatic: docker_mount_cwd_to_workspace"))
    for name in home.present:
        if name.startswith("credential:"):
            path = name.removeprefix("credential:")
            found.append(
                Mount(f"{home.home}/{path}", f"/root/.hermes/{path}", False, "automatic: credential_files")
            )
        elif name == "skills" or name in _CACHES or name.startswith("cache/"):
            target = f"cache/{_CACHES[name]}" if name in _CACHES else name
            kind = "skills" if name == "skills" else "caches"
            found.append(Mount(f"{home.home}/{name}", f"/root/.hermes/{target}", False, f"automatic: {kind}"))
    return found
