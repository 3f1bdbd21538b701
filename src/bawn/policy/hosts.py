"""The grammar of an `allow` line: `name`, `name:port`, `*.name:port`, `@group`. Pure.

Whole labels only. What would match everything, or nothing, or an address, is a load error.
"""

import re

DEFAULT_PORT = 443
GROUPS = ("@anthropic", "@openai", "@github", "@npm", "@pypi", "@debian")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")  # RFC 1123 2.1, RFC 8553 for "_"
_NUMERIC = re.compile(r"(0x[0-9a-f]*|[0-9]+)")  # what inet_aton(3) reads as a part of an address


def problem(text: str) -> str:
    """Why `text` cannot stand in `allow`, or ""."""
    if text.startswith("@"):
        return "" if text in GROUPS else f"an unknown group; known: {' '.join(GROUPS)}"
    if "://" in text or "/" in text:
        return "a URL or a range: write name:port"
    if text.startswith("[") or text.count(":") > 1:
        return "an IP address: only names can be allowed"
    name, colon, port = text.partition(":")
    if colon and not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        return f"the port {port!r}: 1 to 65535"
    wild = name.startswith("*.")
    ascii_name = _to_ascii(name[2:] if wild else name)
    labels = ascii_name.removesuffix(".").split(".")
    if "*" in name[2 if wild else 0 :]:
        return "a star that is not the whole first label: write *.name"
    if not all(_LABEL.fullmatch(label) for label in labels) or len(ascii_name) > 253:
        return "no host name"
    if _NUMERIC.fullmatch(labels[-1]):
        return "an IP address: only names can be allowed"
    if wild and len(labels) < 2:
        return "a whole top-level domain: name at least two labels after the star"
    return ""


def _to_ascii(name: str) -> str:
    """Lower case, IDNA (full-width dots included); what cannot be converted is no name."""
    name = re.sub("[\u3002\uff0e\uff61]", ".", name).lower()
    try:
        return name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:
        return ""
