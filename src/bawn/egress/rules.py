"""Every outcome of a decision: what it is called and what to do about it. BWN8xx.

`docs/egress.md` shows this table (a test holds it to it). 80x and 81x are decided on the name, before
any DNS; 82x on the addresses that DNS gave; 83x on the TLS hello; 84x on an HTTP
request; 850 is no denial: the host was dialled, and did not answer.
"""

from bawn.typed import NamedTuple


class Rule(NamedTuple):
    what: str
    fix: str  # in words; the line itself stands in `Decision.fix`, where a line would allow it


_NAME = "write the host's name: an allow-list holds names only"
_NONE = "none: no line of policy allows it"

RULES: dict[str, Rule] = {
    "BWN800": Rule("allowed", "none needed"),
    "BWN801": Rule("no line of allow names this host", "add the line, if the run needs the host"),
    "BWN802": Rule("the host is allowed, at other ports only", "add the line, if the run needs the port"),
    "BWN803": Rule("the allow-list is empty: nothing passes", "add the line, if the run needs the host"),
    "BWN810": Rule("an IP address instead of a name", _NAME),
    "BWN811": Rule("an IP address of a special range, in whatever spelling", _NONE),
    "BWN812": Rule("a name that is never allowed", _NONE),
    "BWN813": Rule("no host name", _NAME),
    "BWN814": Rule("no port, or no `host:port`", "write host:port, with a port from 1 to 65535"),
    "BWN820": Rule("the name leads to an address of a special range", _NONE),
    "BWN821": Rule(
        "the name leads to a network that this machine forbids",
        "none in a profile: it is the control plane, the host itself, or wall.deny",
    ),
    "BWN822": Rule("the name leads nowhere: DNS gave no address", "look at the name, and at the host's DNS"),
    "BWN823": Rule("DNS gave something that is no address", "look at the host's resolver"),
    "BWN824": Rule("DNS did not answer", "look at the host's resolver, and try again"),
    "BWN830": Rule("the TLS hello names another host than was asked for", "ask for the host that is meant"),
    "BWN831": Rule("the TLS hello names no host", "use a client that sends SNI (RFC 6066 3)"),
    "BWN832": Rule(
        "the TLS hello is encrypted (ECH): the host in it cannot be known",
        "switch Encrypted ClientHello off in the client",
    ),
    "BWN833": Rule("the port is for TLS, and the client does not speak it", "speak TLS there"),
    "BWN834": Rule("a TLS hello that breaks the protocol, or is too long", "use another client"),
    "BWN835": Rule("the TLS hello did not come to its end in time", "try again"),
    "BWN840": Rule("a request that breaks HTTP", "use another client"),
    "BWN841": Rule("Host names another host than was asked for", "ask for the host that is meant"),
    "BWN842": Rule("a body whose length can be read in two ways", "use another client"),
    "BWN843": Rule("a request of a form that is not taken here", "CONNECT host:port, or http://host/path"),
    "BWN844": Rule("the request did not come to its end in time", "try again"),
    "BWN850": Rule("the host does not answer", "look at the host, and at this machine's network"),
}
