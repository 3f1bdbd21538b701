"""What a box with the one way out has and others do not (DESIGN 5): the proxy's socket, the resolver's
address, and variables that tell clients of the proxy port. Pure; one table for both engines.

PID 1 serves what these point to (box/way.c). A run without a way out does not import this.
"""

from bawn.plan.model import Bind, Way
from bawn.plan.oci import WAY

PROXY = "http://127.0.0.1:3128"
LOOPBACK = "localhost,127.0.0.1,::1"
RESOLV_CONF = "/etc/resolv.conf"
# PID 1 answers within 4 s. No search list: a name is asked for as it is.
RESOLVER = "nameserver 127.0.0.1\noptions ndots:0 timeout:5 attempts:2\n"

# Both spellings: curl reads `http_proxy` in lower case only, others only capitals. Node's own fetch
# reads either since 22.21 and 24.5, and only when it is told to; an older one goes the transparent way.
VARIABLES = (
    *((name, PROXY) for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")),
    *((name, PROXY) for name in ("http_proxy", "https_proxy", "all_proxy")),
    ("NO_PROXY", LOOPBACK),
    ("no_proxy", LOOPBACK),
    ("NODE_USE_ENV_PROXY", "1"),
)


def binds(way: Way) -> tuple[Bind, ...]:
    """The mounts, the socket's directory first; bridge mode has no socket."""
    door = (Bind(way.directory, WAY, "ro", True, "bawn"),) if way.directory else ()
    return (*door, Bind(way.resolver, RESOLV_CONF, "ro", False, "bawn"))
