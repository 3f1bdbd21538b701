"""Where this machine gets its own Debian packages, so that an image gets them from there too."""

from bawn.errors import HostError
from bawn.facts.runner import Runner
from bawn.typed import NamedTuple

_FORMAT = "$(RELEASE)\t$(COMPONENT)\t$(REPO_URI)\t$(SIGNED_BY)"
_SUITES = ("", "-updates", "-security")  # not backports, not proposed


class AptFact(NamedTuple):
    """`sources` are lines of sources.list(5), for the release and its updates alone. An address in them
    may hold a password: they are never shown."""

    codename: str
    distro: str
    sources: tuple[str, ...]


def observe(run: Runner, os_release: str = "/etc/os-release") -> AptFact:
    """Raises HostError where this is no Debian or apt names no source of its own release."""
    try:
        with open(os_release) as file:
            fields = dict(line.strip().split("=", 1) for line in file if "=" in line)
    except OSError as error:
        raise HostError(f"cannot read {os_release}: {error.strerror}") from None
    codename = fields.get("VERSION_CODENAME", "").strip('"')
    distro = fields.get("ID", "").strip('"')
    if distro not in ("debian", "ubuntu") or not codename:
        raise HostError(
            f"this is {distro or 'no known system'}: an image is built from Debian's or Ubuntu's packages",
            "build it on Debian 12, 13 or Ubuntu 24.04, then: bawn image import DIRECTORY NAME",
        )
    answer = run(["apt-get", "indextargets", "--format", _FORMAT], timeout=30)
    if answer.code != 0:
        raise HostError(f"apt-get indextargets: {answer.complaint}")
    sources = parse(answer.text, codename)
    if not sources:
        raise HostError(f"apt has no source of {codename}", "apt-get update, or name one in sources.list(5)")
    return AptFact(codename, distro, sources)


def parse(text: str, codename: str) -> tuple[str, ...]:
    """Lines of sources.list(5) from the answer of `apt-get indextargets`."""
    found: dict[str, None] = {}
    for line in text.splitlines():
        release, component, uri, key = (line.split("\t") + [""] * 4)[:4]
        if release not in {codename + suite for suite in _SUITES} or not component or not uri:
            continue
        # apt leaves the word as it is where a source has no key of its own
        option = f"[signed-by={key}] " if key.startswith("/") else ""
        found[f"deb {option}{uri} {release} {component}"] = None
    return tuple(found)
