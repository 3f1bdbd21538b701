"""The configuration of npm, pip and apt as text -> the URLs they fetch from. Pure.

Only what names a registry is taken. A URL in such a file may hold a password: nothing of a URL but
its host and port leaves this module.
"""

import configparser
import re
from collections.abc import Mapping

from bawn.policy import hosts

_PORTS = {"http": 80, "https": 443}
_VARIABLE = r"\$\{([^}?]+)\??\}"
_NPM_LINE = r"""(@[^:=\s]+:)?registry\s*=\s*["']?([^"'\s]+)["']?\s*"""
_PIP_KEYS = ("index-url", "extra-index-url", "find-links")
_APT_LINE = r"deb(?:-src)?\s+(?:\[[^\]]*\]\s+)?(\S+)\s"
# pip's own source names the index that it uses when nothing is configured.
_PIP_INDEX = r"""PyPI\s*=\s*PackageIndex\(\s*["']([^"']+)["'],\s*file_storage_domain=["']([^"']+)["']"""


def npmrc(text: str, environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The default registry ("" where not set) and those of scopes. `${NAME}` is expanded as npm does."""
    default, scoped = "", []
    for line in text.splitlines():
        found = re.fullmatch(_NPM_LINE, line.strip())
        if not found:
            continue
        url = re.sub(_VARIABLE, lambda m: environ.get(m[1], m[0]), found[2])
        if found[1]:
            scoped.append(url)
        else:
            default = url
    return default, tuple(scoped)


def pip_conf(text: str) -> dict[str, tuple[str, ...]]:
    """`index-url`, `extra-index-url` and `find-links` -> their URLs, of [global] and [install].

    Raises ValueError for a file that pip could not read either.
    """
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error).splitlines()[0]) from None
    found: dict[str, tuple[str, ...]] = {}
    for section in ("global", "install"):
        for key, value in parser.items(section) if parser.has_section(section) else ():
            if key.replace("_", "-") in _PIP_KEYS:
                found[key.replace("_", "-")] = tuple(value.split())
    return found


def pip_built_in(source: str) -> tuple[str, ...]:
    """The index and the host of its files, from the text of pip's own models/index.py."""
    found = re.search(_PIP_INDEX, source)
    return (found[1], f"https://{found[2]}/") if found else ()


def sources_list(text: str) -> tuple[str, ...]:
    """The URIs of apt's one-line format (sources.list(5))."""
    lines = (line.split("#")[0].strip() + " " for line in text.splitlines())
    return tuple(found[1] for line in lines if (found := re.match(_APT_LINE, line)))


def deb822(text: str) -> tuple[str, ...]:
    """The URIs of apt's deb822 format (sources.list(5)), without the stanzas that are switched off."""
    found: list[str] = []
    for stanza in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")):
        fields: dict[str, str] = {}
        key = ""
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1] in (" ", "\t"):
                fields[key] = f"{fields.get(key, '')} {line.strip()}"
            elif ":" in line:
                key = line.partition(":")[0].strip().lower()
                fields[key] = line.partition(":")[2].strip()
        if fields.get("enabled", "yes").lower() not in ("no", "false", "0", "off", "without", "disable"):
            found += fields.get("uris", "").split()
    return tuple(found)


def host_of(url: str) -> tuple[str, str]:
    """(name:port, "") of a URL that is fetched over the net; ("", why not) of one that no list can hold.

    ("", "") for what is no matter of the net: file:, cdrom:, a path. The URL itself is never quoted.
    """
    scheme, found, rest = url.partition("://")
    scheme = scheme.lower().rpartition("+")[2]  # apt's mirror+https
    if not found or scheme == "file":
        return "", ""
    if scheme not in _PORTS:
        return "", "a URL that is neither http nor https"
    authority = re.split(r"[/?#\\]", rest, maxsplit=1)[0].rpartition("@")[2]
    line = (
        authority if re.search(r":[0-9]+$", authority) else f"{authority.removesuffix(':')}:{_PORTS[scheme]}"
    )
    why = "a wildcard" if "*" in line else hosts.problem(line)
    if why:
        return "", f"a URL whose host cannot stand in an allow-list: {why}"
    return str(hosts.HostPattern.parse(line)), ""
