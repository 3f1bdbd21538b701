"""What is wrong with one text of a policy, or what was meant: the small grammars of `fields`. Pure.

A check answers with a phrase that says what the text is, or with "".
"""

from bawn.policy import pathtext
from bawn.policy.units import NotAllowed
from bawn.typed import Any

# bawn sets these itself: a policy that set them would move the home or the temporary directory.
# Everything else may be set, LD_PRELOAD and PATH too: it holds in the box only, and the box is the
# boundary.
RESERVED_ENV = ("HOME", "TMPDIR")
RESERVED_ENV_PREFIX = "XDG_"
# A secret travels in the environment of the program that starts the box (`docker run --env NAME`),
# where these would steer that program, on the host.
HOST_ENV = ("PATH", "IFS", "ENV", "BASH_ENV", "GODEBUG")
HOST_ENV_PREFIXES = ("LD_", "DOCKER_", "GCONV_", "SSL_", "PYTHON")

_SECRET_WORDS = frozenset(("KEY", "APIKEY", "TOKEN", "PAT", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE",
                           "CREDENTIAL", "CREDENTIALS"))  # fmt: skip
_PLAIN_WORDS = frozenset(("PUBLIC", "PUBKEY", "FILE", "PATH", "DIR", "ID", "NAME", "URL"))
# How providers begin their tokens, so that people and scanners know them.
_SECRET_STARTS = ("sk-", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "npm_", "pypi-", "xoxb-", "xoxp-",
                  "AKIA", "AIza", "-----BEGIN")  # fmt: skip
_MIN_REASON = 10
_IMAGE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/@:-")
ROOT_FIX = "name a directory made for what may leave, as in ~/vaults/notes/out"
_KERNEL_ROOTS = ("/proc/", "/sys/", "/dev/")
_WIDE_ROOTS = {
    "/": "the whole machine",
    "~": "the home directory: every key, login and start-up file in it",
    "/root": "the home directory of root",
    **dict.fromkeys(("/home", "/Users"), "everybody's home directory"),
    **dict.fromkeys(("/var", "/var/lib", "/var/lib/bawn"), "it holds bawn's own state"),
    **dict.fromkeys(("~/.config", "~/.config/bawn"), "it holds bawn's own configuration"),
    **dict.fromkeys(
        ("~/.local", "~/.local/state", "~/.local/state/bawn", "~/.cache"), "it holds bawn's own state"
    ),
}
HERE = "<the policy's directory>"  # in a fix; `problems.render` knows which it is


def env_name(name: str) -> str:
    """A name that a policy may give a variable of the box."""
    head = name[:1]
    if not name.isascii() or not name.replace("_", "a").isalnum() or head.isdigit():
        return "no variable name"
    if name in RESERVED_ENV or name.startswith(RESERVED_ENV_PREFIX):
        return "a variable that bawn sets itself"
    return ""


def secret_name(name: str) -> str:
    wrong = env_name(name)
    if not wrong and (name in HOST_ENV or name.startswith(HOST_ENV_PREFIXES)):
        return "a variable that would steer the program that starts the box"
    return wrong


def passed_name(name: str) -> str:
    """What is passed on stands in the plan, so a secret may not be."""
    return env_name(name) or ("the name of a secret" if looks_secret(name) else "")


def looks_secret(name: str, value: str = "") -> bool:
    """By its name, or by how its value begins."""
    if value.startswith(_SECRET_STARTS):
        return True
    words = name.upper().split("_")
    if name.startswith("GIT_CONFIG_KEY_") or words[-1] in _PLAIN_WORDS or words[0] in _PLAIN_WORDS:
        return False
    return not _SECRET_WORDS.isdisjoint(words)


def path(text: str) -> str:
    return pathtext.problem(text)


def path_meant(text: str) -> str:
    """The home directory for its variable, the absolute form of a relative path, else ""."""
    for variable in ("$HOME", "${HOME}"):
        if text.startswith(variable):
            return "~" + text.removeprefix(variable)
    if text.startswith(("/", "~")) or not text or "$" in text or ".." in text.split("/"):
        return ""
    rest = "/".join(part for part in text.split("/") if part not in ("", "."))
    return f"{HERE}/{rest}" if rest else HERE


def outbound_root(text: str) -> str:
    """A directory from which files may leave: never one that holds everything, or bawn's own files.

    By its text; `effects.outbound.load` asks the same of what it leads to on the machine.
    """
    wrong = pathtext.problem(text)
    if wrong:
        return wrong
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        return "a way upwards"
    plain = ("" if text.startswith("~") else "/") + "/".join(parts)
    if plain.startswith(_KERNEL_ROOTS) or plain + "/" in _KERNEL_ROOTS:
        return "the kernel's own files"
    return _WIDE_ROOTS.get(plain, "")


def outbound_root_meant(text: str) -> str:
    return "" if outbound_root(text) and not pathtext.problem(text) else path_meant(text)


def workdir(text: str) -> str:
    return pathtext.problem(text, relative=True)


def below(text: str) -> str:
    """A path inside a source, relative to it."""
    if text.startswith(("/", "~")):
        return "an absolute path"
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        return "a way upwards"
    return pathtext.problem(text, relative=True) if parts else "the source itself"


def image(text: str) -> str:
    """The name of an image is also a path below bawn's state."""
    if set(text) - _IMAGE or len(text) > 255 or not text[:1].isalnum():
        return "no image name"
    if not all(part.strip(".") for part in text.split("/")):
        return "a path, not the name of an image"
    return ""


def reason(text: str) -> str:
    return "" if len(text.strip()) >= _MIN_REASON else "too short: it stands in every record"


def cidr(value: Any) -> str:
    """A range of addresses in its usual spelling; one address is a range too."""
    if not isinstance(value, str):
        raise NotAllowed("not a string")
    quick = _cidr4(value)
    if quick:
        return quick
    import ipaddress  # 3 ms, for IPv6 and for saying what is wrong

    try:
        return str(ipaddress.ip_network(value))
    except ValueError:
        pass
    try:
        meant = ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise NotAllowed("no range of addresses") from None
    raise NotAllowed("a range with host bits set", f'"{meant}"')


def _cidr4(text: str) -> str:
    """`text`, where it is a plain IPv4 range without host bits; else ""."""
    address, _, width = text.partition("/")
    parts = [*address.split("."), width]
    if len(parts) != 5 or not all(p.isascii() and p.isdigit() and p == str(int(p[:3])) for p in parts):
        return ""
    *octets, bits = map(int, parts)
    number = int.from_bytes(bytes(octets)) if max(octets) < 256 else -1
    return text if bits <= 32 and number >= 0 and number % (1 << (32 - bits)) == 0 else ""
