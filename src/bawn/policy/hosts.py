"""The grammar of an `allow` line: `name`, `name:port`, `*.name:port`, `@group`. Pure.

Whole labels only. What would match everything, or nothing, or an address, is a load error.
"""

import re

DEFAULT_PORT = 443
GROUPS = ("@anthropic", "@openai", "@github", "@npm", "@pypi", "@debian")
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"  # RFC 1123 2.1, RFC 8553 for "_"
_NUMERIC = r"0x[0-9a-f]*|[0-9]+"  # what inet_aton(3) reads as a part of an address
_DOTS = "[\u3002\uff0e\uff61]"  # RFC 3490 3.1: read as dots
# IDNA 2003 and 2008 make different names of these (UTS 46, section 7), and so do two programs.
_AMBIGUOUS = frozenset("\u00df\u1e9e\u03c2\u200c\u200d")
_ADDRESS = "an IP address: only names can be allowed"


def problem(text: str) -> str:
    """Why `text` cannot stand in `allow`, or ""."""
    if not text:
        return "empty"
    if text.startswith("@"):
        return "" if text in GROUPS else "not a group"
    if "/" in text:
        return "a URL or a range of addresses"
    if "@" in text:
        return "a name with a user"
    if text.startswith("[") or text.count(":") > 1:
        return _ADDRESS
    name, colon, port = text.partition(":")
    if colon and not _is_port(port):
        return f"no port ({port!r}): 1 to 65535"
    wild = name.startswith("*.")
    return _name_problem(name[2:] if wild else name, wild)


def meant(text: str) -> str:
    """What was probably meant by a text with a problem, or ""."""
    if text.startswith("@"):
        from bawn.policy.kinds import nearest

        return nearest(text.lower(), GROUPS)
    name = text.partition("://")[2].partition("/")[0].rpartition("@")[2]
    return name if name and not problem(name) else ""


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and text[0] != "0" and len(text) < 6 and int(text) < 65536


def _name_problem(name: str, wild: bool) -> str:
    if name == "*" or (wild and not name.strip(".*")):
        return "every host: name those it needs"
    if "*" in name:
        return "a star that is not the whole first label"
    if not _AMBIGUOUS.isdisjoint(name):
        return "a name that programs spell in two ways: write its xn-- form"
    ascii_name = _to_ascii(name).removesuffix(".")
    labels = ascii_name.split(".")
    if not all(re.fullmatch(_LABEL, label) for label in labels) or len(ascii_name) > 253:
        return "no host name"
    if re.fullmatch(_NUMERIC, labels[-1]):
        return _ADDRESS
    if wild and len(labels) < 2:
        return "a whole top-level domain"
    if labels[-1] == "localhost":  # RFC 6761 6.3
        return "this machine itself: every service on it could be reached"
    return ""


def _to_ascii(name: str) -> str:
    """Lower case and IDNA; "" for what cannot be converted."""
    if name.isascii():
        return name.lower()
    try:
        return re.sub(_DOTS, ".", name).lower().encode("idna").decode()
    except UnicodeError:
        return ""
