"""What a client is told of a decision, as an HTTP response: the rule, the reason and the way on. Pure.

An agent reads it, and so does whoever reads the agent's log: it names no path of the host.
"""

from bawn.egress.decide import Decision
from bawn.egress.rules import RULES

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_REASONS = {400: "Bad Request", 403: "Forbidden", 408: "Request Timeout", 502: "Bad Gateway"}
# By the rule; 403 for all others. RFC 9110 15.5 and 15.6.
_STATUS = dict.fromkeys(("BWN813", "BWN814", "BWN840", "BWN841", "BWN842", "BWN843"), 400)
_STATUS |= {"BWN844": 408} | dict.fromkeys(("BWN822", "BWN823", "BWN824", "BWN850"), 502)


def refusal(decision: Decision, profile: str) -> bytes:
    """The whole response. `Proxy-Status` is RFC 9209's, for programs."""
    status = _STATUS.get(decision.rule, 403)
    rule = RULES[decision.rule]
    way = f'add "{decision.fix}" to allow in profile.{profile} of bawn.toml' if decision.fix else rule.fix
    verdict = "failed" if status == 502 else "denied"
    text = f"bawn: {verdict} {decision.rule}: {decision.reason}\nrule: {rule.what}\nfix: {way}\n"
    body = "".join(c if c.isprintable() or c == "\n" else "?" for c in text).encode(errors="replace")
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        f'Proxy-Status: bawn; error=http_request_denied; details="{decision.rule}"\r\n'
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body


def listed(ports: tuple[int, ...]) -> bytes:
    """To the resolver in the box (box/way.c): the name has these ports."""
    head = f"HTTP/1.1 200 Listed\r\nBawn-Ports: {','.join(map(str, ports))}\r\n"
    return head.encode() + b"Content-Length: 0\r\nConnection: close\r\n\r\n"
