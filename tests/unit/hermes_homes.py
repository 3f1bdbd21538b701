"""Hermes homes, each named by its trap: files, and the environment of the gateway."""

from pathlib import Path
from typing import NamedTuple

HARD = """\
terminal:
  backend: docker
  cwd: /workspace
  docker_network: false
  container_persistent: false
  docker_persist_across_processes: false
gateway:
  strict: true
  trust_recent_files: false
"""


class Home(NamedTuple):
    """Files by their path below the test's directory; "home" is Hermes', "managed" the managed scope."""

    files: dict[str, str]
    environ: dict[str, str] = {}  # noqa: RUF012
    rules: tuple[str, ...] = ()  # of severity error or warning, automatic mounts apart


HOMES: dict[str, Home] = {
    "nothing_configured": Home({}, rules=("BWN951", "BWN955", "BWN956")),
    "hardened": Home({"home/config.yaml": HARD}),
    "container_without_strict": Home(
        {"home/config.yaml": "terminal: {backend: docker, docker_network: false}\n"},
        rules=("BWN953", "BWN955", "BWN956"),
    ),
    "environment_where_config_is_silent": Home(
        {"home/config.yaml": "terminal:\n  timeout: 60\n"},
        {
            "TERMINAL_ENV": "docker",
            "HERMES_MEDIA_DELIVERY_STRICT": "on",
            "HERMES_MEDIA_ALLOW_DIRS": "/a,/b:~/c, rel",
        },
        ("BWN952", "BWN953", "BWN956", "BWN960", "BWN964"),
    ),
    "config_wins_over_dotenv": Home(
        {
            "home/config.yaml": HARD,
            "home/.env": "TERMINAL_ENV=local\nexport HERMES_MEDIA_DELIVERY_STRICT=0\n",
        },
    ),
    "dotenv_wins_over_environment": Home(
        {
            "home/config.yaml": "model: {}\n",
            "home/.env": "TERMINAL_ENV='docker' # why\nTERMINAL_DOCKER_NETWORK=no\n",
        },
        {"TERMINAL_ENV": "local", "TERMINAL_DOCKER_NETWORK": "true"},
        ("BWN953", "BWN955", "BWN956", "BWN960"),
    ),
    "empty_allow_list_leaves_the_environment": Home(
        {
            "home/config.yaml": HARD + "  media_delivery_allow_dirs: []\n",
            "home/.env": "HERMES_MEDIA_ALLOW_DIRS=/\n",
        },
        rules=("BWN957", "BWN960"),
    ),
    "managed_config_pins": Home(
        {"home/config.yaml": HARD, "managed/config.yaml": "terminal:\n  docker_network: true\n"},
        rules=("BWN952",),
    ),
    "managed_env_under_config": Home(
        {"home/config.yaml": HARD, "managed/.env": "TERMINAL_ENV=local\nTERMINAL_DOCKER_IMAGE=x:1\n"},
        rules=("BWN960",),
    ),
    "managed_without_config": Home(
        {"managed/config.yaml": "terminal: {backend: docker}\ngateway: {strict: true}\n"},
        rules=("BWN952", "BWN953", "BWN955", "BWN956"),
    ),
    "broken_yaml_opens_all": Home(
        {"home/config.yaml": HARD + "  strict: [\n"}, rules=("BWN950", "BWN951", "BWN955", "BWN956")
    ),
    "a_list_for_a_config": Home(
        {"home/config.yaml": "- a\n"}, rules=("BWN950", "BWN951", "BWN955", "BWN956")
    ),
    "strict_twice": Home({"home/config.yaml": HARD + "  strict: false\n"}, rules=("BWN955", "BWN961")),
    "quoted_off_is_on": Home({"home/config.yaml": HARD.replace("strict: true", 'strict: "off"')}),
    "quoted_on_is_off": Home(
        {"home/config.yaml": HARD.replace("network: false", 'network: "on"').replace("true", "1")}
    ),
    "cwd_replaced": Home(
        {"home/config.yaml": HARD.replace("/workspace", "/home/me/vault")}, rules=("BWN959",)
    ),
    "cwd_mounted": Home(
        {"home/config.yaml": HARD.replace("/workspace", "/home/me/v\n  docker_mount_cwd_to_workspace: yes")},
        rules=("BWN959",),
    ),
    "volumes_and_references": Home(
        {
            "home/config.yaml": HARD.replace(
                "gateway", '  docker_volumes: ["${V}:/v:ro", "/r:/r", /]\ngateway'
            )
        },
        {"V": "/vault"},
    ),
    "volumes_as_text": Home(
        {
            "home/config.yaml": HARD.replace(
                "gateway", "  docker_env: {A: b}\n  docker_extra_args: [--privileged]\ngateway"
            )
        },
        rules=("BWN962", "BWN963"),
    ),
    "automatic_mounts": Home(
        {
            "home/config.yaml": HARD.replace(
                "gateway", "  credential_files: [token.json, ../x, /abs]\ngateway"
            ),
            "home/token.json": "{}",
            "home/skills/a/SKILL.md": "",
            "home/cache/web/x": "",
            "home/image_cache/y": "",
        },
        rules=("BWN958",),
    ),
    "a_top_level_variable": Home(
        {"home/config.yaml": "TERMINAL_ENV: docker\nHERMES_MEDIA_DELIVERY_STRICT: 1\n"},
        rules=("BWN952", "BWN953", "BWN956"),
    ),
    "recent_for_no_time": Home({"home/config.yaml": HARD.replace("files: false", "files_seconds: 0")}),
}


def make(top: Path, home: Home) -> tuple[Path, dict[str, str]]:
    """Writes it: the Hermes home, and the environment with the managed scope."""
    (top / "home").mkdir()
    (top / "managed").mkdir()
    for name, text in home.files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    environ = {"HERMES_MANAGED_DIR": str(top / "managed"), "HOME": str(top), **home.environ}
    return top / "home", environ
