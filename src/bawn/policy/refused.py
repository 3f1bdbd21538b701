"""Paths that no box may be given: the table. Pure; `plan.refused` compares, `facts.paths` resolves.

Each is refused in both directions: a mount of it, of anything inside it, and of a directory that
holds it. Where the scope is "self" what lies inside is ordinary (a project in the home directory).
"""

from collections.abc import Iterable, Mapping

from bawn.typed import Literal, NamedTuple


class Refused(NamedTuple):
    path: str  # as a policy would write it
    rule: str  # key of plan.rules.RULES
    why: str
    scope: Literal["tree", "self"] = "tree"
    lift: bool = True  # an override may lift it


_ROOT = "the whole machine"
_KERNEL = "the kernel's own files: they reach every process and device"
_SYSTEM = "it configures or starts this machine"
_RUN = "sockets of the host's services; a read-only mount does not stop connect()"
_ENGINE = "whoever reaches the container engine is root on this host"
_KEYS = "keys and tokens"
_BROWSER = "a browser's cookies, passwords and sessions"
_RING = "a key ring or password store"
_AGENT = "an agent's own logins and history"
_OWN = "bawn's own files: an agent that writes them decides what is allowed"

_TABLE: tuple[tuple[str, str, str], ...] = (
    ("BWN102", _SYSTEM, "/etc /boot /root"),
    ("BWN102", _SYSTEM, "/private/etc /private/var/root /var/spool/cron /var/lib/systemd"),
    ("BWN109", _ENGINE, "/run/docker.sock /var/run/docker.sock /run/containerd /run/podman"),
    ("BWN109", _ENGINE, "/run/crio /run/docker /run/k3s ~/.docker/run ~/.docker/desktop ~/.colima"),
    ("BWN109", _ENGINE, "~/.lima ~/.orbstack ~/.rd ~/.local/share/containers /var/lib/docker"),
    ("BWN109", _ENGINE, "/var/lib/containerd /var/lib/containers /var/lib/kubelet"),
    ("BWN106", _KEYS, "~/.ssh ~/.gnupg ~/.aws ~/.kube ~/.docker ~/.config/gcloud ~/.azure"),
    ("BWN106", _KEYS, "~/.netrc ~/_netrc ~/.npmrc ~/.yarnrc.yml ~/.pypirc ~/.git-credentials"),
    ("BWN106", _KEYS, "~/.config/git/credentials ~/.config/gh ~/.config/hub ~/.config/glab-cli"),
    ("BWN106", _KEYS, "~/.config/containers/auth.json ~/.config/github-copilot ~/.vault-token"),
    ("BWN106", _KEYS, "~/.terraform.d ~/.terraformrc ~/.oci ~/.aliyun ~/.bluemix ~/.config/doctl"),
    ("BWN106", _KEYS, "~/.config/rclone ~/.config/hcloud ~/.config/heroku ~/.fly ~/.databrickscfg"),
    ("BWN106", _KEYS, "~/.snowflake ~/.pgpass ~/.my.cnf ~/.mylogin.cnf ~/.s3cfg ~/.boto"),
    ("BWN106", _KEYS, "~/.cargo/credentials ~/.cargo/credentials.toml ~/.gem/credentials"),
    ("BWN106", _KEYS, "~/.composer/auth.json ~/.config/composer/auth.json ~/.m2/settings.xml"),
    ("BWN106", _KEYS, "~/.config/sops ~/.config/age ~/.minikube ~/.config/stripe ~/.config/op"),
    ("BWN107", _BROWSER, "~/.mozilla ~/.librewolf ~/.waterfox ~/.thunderbird ~/.zen"),
    ("BWN107", _BROWSER, "~/.config/google-chrome ~/.config/google-chrome-beta"),
    ("BWN107", _BROWSER, "~/.config/google-chrome-unstable ~/.config/chromium ~/.config/vivaldi"),
    ("BWN107", _BROWSER, "~/.config/BraveSoftware ~/.config/microsoft-edge ~/.config/opera"),
    ("BWN107", _BROWSER, "~/.config/microsoft-edge-beta ~/.config/microsoft-edge-dev"),
    ("BWN107", _BROWSER, "~/.var/app ~/snap/firefox ~/snap/chromium ~/snap/brave"),
    ("BWN107", _BROWSER, "~/Library/Safari ~/Library/Cookies ~/Library/Containers"),
    ("BWN107", _BROWSER, "~/Library/Application\0Support"),
    ("BWN108", _RING, "~/.local/share/keyrings ~/.local/share/kwalletd ~/.kde/share/apps/kwallet"),
    (
        "BWN108",
        _RING,
        "~/.password-store ~/.local/share/gopass ~/Library/Keychains ~/.config/1Password",
    ),
    ("BWN108", _RING, "~/.config/Bitwarden ~/.config/keepassxc ~/.pki"),
    ("BWN111", _AGENT, "~/.claude ~/.claude.json ~/.config/claude ~/.codex ~/.gemini ~/.qwen"),
    ("BWN111", _AGENT, "~/.hermes ~/.openclaw ~/.local/share/opencode ~/.config/goose ~/.cursor"),
)

REFUSED: tuple[Refused, ...] = (
    Refused("/", "BWN101", _ROOT, "self", lift=False),
    *(Refused(path, "BWN103", _KERNEL, lift=False) for path in ("/proc", "/sys", "/dev")),
    Refused("~", "BWN105", "the home directory: every key, login and start-up file in it", "self"),
    Refused("/home", "BWN105", "everybody's home directory", "self"),
    Refused("/Users", "BWN105", "everybody's home directory", "self"),
    *(Refused(path, "BWN104", _RUN) for path in ("/run", "/var/run")),
    *(
        Refused(path.replace("\0", " "), rule, why, lift=rule != "BWN109")
        for rule, why, row in _TABLE
        for path in row.split(" ")
    ),
)

# Environment variables that name another place of the same kind (a `unix://` prefix is dropped).
REFUSED_ENV: tuple[tuple[str, str, str, bool], ...] = (
    ("DOCKER_HOST", "BWN109", _ENGINE, False),
    ("CONTAINER_HOST", "BWN109", _ENGINE, False),
    ("CONTAINERD_ADDRESS", "BWN109", _ENGINE, False),
    ("XDG_RUNTIME_DIR", "BWN104", _RUN, True),
    ("SSH_AUTH_SOCK", "BWN106", _KEYS, True),
    ("GNUPGHOME", "BWN106", _KEYS, True),
    ("DOCKER_CONFIG", "BWN106", _KEYS, True),
    ("KUBECONFIG", "BWN106", _KEYS, True),
    ("AWS_SHARED_CREDENTIALS_FILE", "BWN106", _KEYS, True),
    ("CLOUDSDK_CONFIG", "BWN106", _KEYS, True),
    ("PASSWORD_STORE_DIR", "BWN108", _RING, True),
    ("CLAUDE_CONFIG_DIR", "BWN111", _AGENT, True),
    ("CODEX_HOME", "BWN111", _AGENT, True),
)


_BY_PATH = {row.path: row for row in REFUSED}
_BY_ENV = {name: (rule, why, lift) for name, rule, why, lift in REFUSED_ENV}
OWN = "bawn"  # stands where a variable's name would, for bawn's own directories


def asked(environ: Mapping[str, str], own: Iterable[str]) -> list[tuple[str, str]]:
    """Everything that is refused here, as (key for `row`, path as a policy would write it).

    The key is the path of the table, or "$NAME=path" (no policy can write that) for what `environ`
    names and for bawn's `own` directories.
    """
    found = [(row.path, row.path) for row in REFUSED]
    found += [(f"${OWN}={path}", path) for path in own if path]
    for name in _BY_ENV:
        for text in environ.get(name, "").removeprefix("unix://").split(":"):
            if text.startswith("/") and text.strip("/"):
                found.append((f"${name}={text}", text))
    return found


def row(key: str) -> Refused | None:
    """The row that a key of `asked` stands for, None for any other text."""
    if not key.startswith("$"):
        return _BY_PATH.get(key)
    name, _, path = key[1:].partition("=")
    if name == OWN:
        return Refused(path, "BWN110", _OWN, lift=False)
    if name not in _BY_ENV:
        return None
    rule, why, lift = _BY_ENV[name]
    return Refused(path, rule, f"{why} (${name})", lift=lift)
