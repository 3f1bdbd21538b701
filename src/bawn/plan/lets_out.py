"""What a listed host still lets out, said before anybody relies on the list. A table. Pure.

An allow-list says where data may go, not whose account there receives it.
"""

from collections.abc import Iterator

from bawn.plan.groups import PROVIDERS, REGISTRIES
from bawn.plan.model import Finding
from bawn.plan.rules import finding
from bawn.policy.hosts import HostPattern

_CODE, _API = "BWN721", "BWN722"
# Services that anybody may have an account at: the host and all below it -> the rule.
_SERVICES = {
    "github.com": _CODE,
    "githubusercontent.com": _CODE,
    "gitlab.com": _CODE,
    "bitbucket.org": _CODE,
    "codeberg.org": _CODE,
    "sr.ht": _CODE,
    "huggingface.co": _CODE,
    "anthropic.com": _API,
    "claude.com": _API,
    "claude.ai": _API,
    "openai.com": _API,
    "chatgpt.com": _API,
    "generativelanguage.googleapis.com": _API,
    "openrouter.ai": _API,
    "api.mistral.ai": _API,
    "api.deepseek.com": _API,
    "api.groq.com": _API,
    "api.x.ai": _API,
}


def lets_out(allow: tuple[str, ...], place: str) -> list[Finding]:
    """One warning for each line and each rule that it meets."""
    return [
        finding(rule, f"{place}.allow[{number}]", text)
        for number, line in enumerate(allow)
        for rule, text in _ways(line)
    ]


def _ways(line: str) -> Iterator[tuple[str, str]]:
    if line in REGISTRIES:
        if line != "@debian":  # nobody uploads to a mirror of a distribution
            yield "BWN723", f"{line} reaches a registry of packages"
        return
    members = PROVIDERS.get(line)
    patterns = [HostPattern.parse(text) for text in ([m.host for m in members] if members else [line])]
    for pattern in patterns:
        if pattern.wild:
            yield "BWN720", f"{line} allows every name below {pattern.name}"
    for rule, what in ((_CODE, "code from anyone"), (_API, "a request with anyone's key")):
        mine = [name for name, of in _SERVICES.items() if of == rule]
        met = [name for name in mine if any(_meets(pattern, name) for pattern in patterns)]
        if met:
            yield rule, f"{line} reaches {', '.join(met)}: {what} is accepted there"


def _meets(pattern: HostPattern, service: str) -> bool:
    """The pattern allows the service, or a host below it."""
    below = f".{pattern.name}".endswith(f".{service}")
    return below or (pattern.wild and service.endswith(f".{pattern.name}"))
