"""A hermetic network to try the boundary in: two namespaces and a wire, without an uplink.

    host    where bawn, its proxy and wall, and a docker daemon of its own run; its way out is the world
    world   every host of world.HOSTS, played by servers.py

What reached whom is seen twice: the servers log what they understood, and counters in the world's own
packet filter count whatever came for an address, of any protocol. Nothing outlives the context: the
servers end with their stdin, and what a killed lab left is removed by the next one.
"""

import json
import os
import shutil
import signal
import sys
import tempfile

from bawn.effects import process
from bawn.errors import HostError
from bawn.proof import world
from bawn.typed import Any, NamedTuple

TIMEOUT = 20.0  # seconds for one tool
_PREFIX = "bawn-proof"
_NETNS = "/run/netns"
_FORWARD = "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding"
_SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Contact(NamedTuple):
    """Somebody reached a host; `name` and `type` are those of a DNS question."""

    host: str
    address: str
    proto: str  # "tcp", "udp", "dns-udp", "dns-tcp"
    port: int
    peer: str
    name: str = ""
    type: str = ""


class Lab:
    """`with Lab() as lab`. Raises HostError where it cannot be made; nothing is left then."""

    def __init__(self) -> None:
        self.id = f"{_PREFIX}-{os.getpid()}-{os.urandom(3).hex()}"
        self.host = f"{self.id}-host"
        self.world = f"{self.id}-world"
        self.directory = ""
        self._servers = 0
        self._stdin = -1

    @property
    def ca(self) -> str:
        """The certificate (PEM) that signs the servers' own."""
        return f"{self.directory}/ca.pem"

    def __enter__(self) -> "Lab":
        sweep()
        self.directory = tempfile.mkdtemp(prefix=f"{self.id}-", dir="/var/tmp")
        os.chmod(self.directory, 0o755)
        try:
            self._certificates()
            self._network()
            self._serve()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1
        if self._servers:
            os.kill(self._servers, signal.SIGKILL)
            os.waitpid(self._servers, 0)
            self._servers = 0
        _delete((self.host, self.world))
        shutil.rmtree(self.directory, ignore_errors=True)

    def inside(self, *argv: str) -> tuple[str, ...]:
        """`argv` as run in the host namespace: no other namespace changes, so cgroups stay visible."""
        return _in(self.host, *argv)

    def contacts(self) -> tuple[Contact, ...]:
        """What the servers understood so far, in order."""
        with open(f"{self.directory}/log") as file:
            return tuple(Contact(**json.loads(line)) for line in file)

    def packets(self) -> dict[str, int]:
        """Packets that came for each host so far, of any protocol."""
        found = json.loads(_tool(*_in(self.world, "nft", "--json", "list", "counters")).text)
        entries: list[dict[str, Any]] = [e["counter"] for e in found["nftables"] if "counter" in e]
        return {entry["name"]: entry["packets"] for entry in entries}

    def _certificates(self) -> None:
        """A CA of the lab's own and one certificate for all names of the world; valid for two days."""
        make = ("openssl", "req", "-x509", "-nodes", "-days", "2", "-newkey", "ec",
                "-pkeyopt", "ec_paramgen_curve:P-256")  # fmt: skip
        at = self.directory
        # Strict clients (Python 3.13) want to read that a CA may sign (RFC 5280 4.2.1.3).
        _tool(*make, "-subj", "/CN=bawn lab", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
              "-keyout", f"{at}/ca.key", "-out", f"{at}/ca.pem")  # fmt: skip
        names = ",".join(f"DNS:{name}" for name in world.TLS_NAMES)
        _tool(*make, "-CA", f"{at}/ca.pem", "-CAkey", f"{at}/ca.key", "-subj", "/CN=bawn lab server",
              "-addext", f"subjectAltName={names}", "-addext", "basicConstraints=critical,CA:FALSE",
              "-keyout", f"{at}/server.key", "-out", f"{at}/server.pem")  # fmt: skip

    def _network(self) -> None:
        """Both namespaces and the wire. The world knows no way but back, and forwards nothing."""
        _ip("", f"netns add {self.host}", f"netns add {self.world}")
        _ip("", f"link add out netns {self.host} type veth peer name in netns {self.world}")
        for name, device, side, other in (
            (self.host, "out", "host", "world"), (self.world, "in", "world", "host"),
        ):  # fmt: skip
            addresses = [f"address add {a} dev {device} nodad" for a in world.LINK[side]]
            routes = [f"route add default via {a.partition('/')[0]}" for a in world.LINK[other]]
            _ip(name, "link set lo up", *addresses, f"link set {device} up", *routes)
        own = [address for host in world.HOSTS for address in host.addresses]
        _ip(self.world, *(f"address add {a} dev lo nodad" for a in own))
        _tool(*self.inside("sh", "-ec", _FORWARD))
        _tool(*_in(self.world, "nft", "--file", "-"), input=_counters().encode())

    def _serve(self) -> None:
        """Starts the servers and waits until they listen."""
        enter = shutil.which("nsenter")
        if not enter:
            raise HostError("nsenter is not installed", "sudo apt-get install util-linux")
        argv = _in(self.world, sys.executable, "-I", "-c",
                   f"import sys, runpy; sys.path.insert(0, {_SOURCE!r}); "
                   "runpy.run_module('bawn.proof.servers', run_name='__main__', alter_sys=True)",
                   self.directory)  # fmt: skip
        reader, self._stdin = os.pipe()
        ready, told = os.pipe()
        errors = os.open(f"{self.directory}/errors", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            files = {0: reader, 1: told, 2: errors}
            self._servers = process.spawn((enter, *argv[1:]), process.tool_environment(), files)
        finally:
            for fd in (reader, told, errors):
                os.close(fd)
        try:
            if os.read(ready, 16) != b"ready\n":
                with open(f"{self.directory}/errors") as file:
                    raise HostError(f"the servers of the lab did not start: {file.read().strip()[-300:]}")
        finally:
            os.close(ready)


def sweep() -> None:
    """Removes the namespaces and files of labs whose process is dead."""
    names = os.listdir(_NETNS) if os.path.isdir(_NETNS) else []
    _delete(tuple(n for n in names if _dead(n)))
    for name in os.listdir("/var/tmp"):
        if _dead(name):
            shutil.rmtree(f"/var/tmp/{name}", ignore_errors=True)


def _dead(name: str) -> bool:
    number = name.removeprefix(f"{_PREFIX}-").partition("-")[0]
    return name.startswith(f"{_PREFIX}-") and number.isdigit() and not os.path.exists(f"/proc/{number}")


def _delete(names: tuple[str, ...]) -> None:
    there = [f"netns delete {n}" for n in names if os.path.exists(f"{_NETNS}/{n}")]
    if there:
        _ip("", *there)


def _counters() -> str:
    """A filter for the world that counts packets by host and drops none."""
    lines = [f"  counter {host.name} {{ }}" for host in world.HOSTS]
    lines += ["  chain came { type filter hook input priority 0; policy accept;"]
    for host in world.HOSTS:
        for address in host.addresses:
            family = "ip6" if ":" in address else "ip"
            lines.append(f'    {family} daddr {address} counter name "{host.name}"')
    return "\n".join(["table inet lab {", *lines, "  }", "}", ""])


def _in(namespace: str, *argv: str) -> tuple[str, ...]:
    return ("nsenter", f"--net={_NETNS}/{namespace}", *argv)


def _ip(namespace: str, *commands: str) -> None:
    where = ("-n", namespace) if namespace else ()
    _tool("ip", *where, "-batch", "-", input="\n".join([*commands, ""]).encode())


def _tool(*argv: str, input: bytes | None = None) -> process.Result:
    """Raises HostError also where the tool says no."""
    done = process.run(argv, timeout=TIMEOUT, input=input)
    if done.code != 0:
        raise HostError(f"{argv[0]}: {done.complaint}", process.paste(argv))
    return done
