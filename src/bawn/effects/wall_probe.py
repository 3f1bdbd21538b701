"""`bawn wall verify` sends its packets: a throw-away world beside the machine's own, made and destroyed.

Everything asked is an address of a device made here (`plan/wall_packets.py`); before any packet goes, the
kernel is asked whether it would send it there, and nowhere else.
"""

import contextlib
import ipaddress
import json
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

from bawn.effects import process, wall, wall_tools
from bawn.effects.wall_tools import program, tool
from bawn.errors import BawnError, EngineError
from bawn.plan import wall_packets
from bawn.plan.model import Finding
from bawn.plan.wall import PREFIX
from bawn.plan.wall_packets import LINK_LOCAL, V6, WAY, Net, Target, World
from bawn.plan.wall_rules import finding
from bawn.typed import Any

_SECONDS = 1.0  # how long an answer may take
_NETNS = "/run/netns"
_AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wall_agent.py")
_Place = tuple[str, str, int]  # protocol, address, port
_BOXES = {"a": ("box", 2), "b": ("box", 3), "c": ("control", 2), "d": ("control", 3)}


def probe(where: str, holds: bool) -> tuple[Finding, ...]:
    """The findings of the packets; BWN885 where they could not be sent. Where the wall does not hold no
    way is opened, so none is asked for; all the rest is."""
    try:
        with contextlib.ExitStack() as undo:
            return _probe(where, holds, undo)
    except (BawnError, OSError, ValueError) as error:
        return (finding("BWN885", "packets", str(error)),)


def _probe(where: str, holds: bool, undo: contextlib.ExitStack) -> tuple[Finding, ...]:
    tag = f"{os.getpid():06x}"
    _sweep(where)
    undo.callback(_destroy, where, tag)
    world = _choose()
    _build(world, tag)
    _stays_here(world, tag)
    opened = _open(where, world, tag) if holds else ()
    boxes = wall_packets.from_box(world, world.box, world.control, way=holds)
    twins = wall_packets.from_box(world, world.control, world.box, way=holds)
    into, into_twin = (wall_packets.into_box(world, net) for net in (world.box, world.control))
    heard = [
        undo.enter_context(_Listener(namespace, places))
        for namespace, places in _listeners(tag, boxes, twins, into, into_twin)
    ]
    box = _ask_both(_ns(tag, "a"), boxes, into)
    came = {target for one in heard for target in one.came()}
    twin = _ask_both(_ns(tag, "c"), twins, into_twin)
    found: list[Finding] = []
    for targets, reached, control in ((boxes, box[0], twin[0]), (into, box[1], twin[1])):
        sure = [r or (t.proto, t.address, t.port) in came for t, r in zip(targets, reached, strict=True)]
        found += wall_packets.judge(targets, sure, control)
    return (*opened, *found)


def _choose() -> World:
    """Addresses that nobody here has or routes. Raises EngineError."""
    ip = program("ip")
    taken = {str(a["local"]) for i in json.loads(tool(ip, "-j", "address")) for a in i.get("addr_info", ())}
    for family in ("-4", "-6"):
        routes = json.loads(tool(ip, family, "-j", "route", "show", "table", "all") or "[]")
        taken |= {str(r["dst"]) for r in routes if r.get("dst") not in (None, "default")}
    nets = [ipaddress.ip_network(text, strict=False) for text in taken]
    nets = [net for net in nets if net.prefixlen > 0]
    for _ in range(16):
        number, chance = int.from_bytes(os.urandom(2)) % 512, os.urandom(5)
        prefix = V6.format(chance[0], int.from_bytes(chance[1:3]), int.from_bytes(chance[3:]))
        mine = (ipaddress.ip_network(f"198.{18 + number // 256}.{number % 256}.0/24"),
                ipaddress.ip_network(f"{prefix}::/48"))  # fmt: skip
        if not any(m.version == net.version and m.overlaps(net) for m in mine for net in nets):
            return wall_packets.world(number, prefix, _has_ipv6())
    raise EngineError("this machine routes all of 198.18.0.0/15: no address is left to try the wall with")


def _has_ipv6() -> bool:
    try:
        with open("/proc/sys/net/ipv6/conf/default/disable_ipv6") as file:
            return file.read().strip() == "0"
    except OSError:
        return False


def _ns(tag: str, who: str) -> str:
    return f"bawn-wall-{tag}-{who}"


def _bridges(tag: str) -> dict[str, str]:
    return {"box": f"{PREFIX}v{tag}", "control": f"bcv{tag}"}


def _build(world: World, tag: str) -> None:
    """Two bridges with two boxes each, and a neighbour. Raises EngineError."""
    nets: dict[str, Net] = {"box": world.box, "control": world.control}
    _ip("", *(f"netns add {_ns(tag, who)}" for who in (*_BOXES, "n")))
    for name, bridge in _bridges(tag).items():
        _ip("", f"link add {bridge} type bridge", f"link set {bridge} addrgenmode none",
            *_addresses(bridge, nets[name], 1, world.ipv6), f"link set {bridge} up")  # fmt: skip
    for who, (name, number) in _BOXES.items():
        port = f"bv{who}{tag}"
        _ip("", f"link add {port} type veth peer name eth0 netns {_ns(tag, who)}",
            f"link set {port} addrgenmode none", f"link set {port} master {_bridges(tag)[name]}",
            f"link set {port} up")  # fmt: skip
        _end(_ns(tag, who), nets[name], number, world.ipv6)
    port = f"bvn{tag}"
    _ip("", f"link add {port} type veth peer name eth0 netns {_ns(tag, 'n')}",
        f"link set {port} addrgenmode none", *_addresses(port, world.neighbour, 1, world.ipv6),
        f"link set {port} up")  # fmt: skip
    _end(_ns(tag, "n"), world.neighbour, 2, world.ipv6)


def _end(namespace: str, net: Net, number: int, ipv6: bool) -> None:
    routes = [
        f"route add default via {net.four(1)}",
        *([f"route add default via {net.six(1)}"] if ipv6 else []),
    ]
    _ip(namespace, "link set lo up", "link set eth0 addrgenmode none",
        *_addresses("eth0", net, number, ipv6), "link set eth0 up", *routes)  # fmt: skip


def _addresses(device: str, net: Net, number: int, ipv6: bool) -> list[str]:
    six = [f"{net.six(number)}/64", f"{LINK_LOCAL.format(number)}/64"] if ipv6 else []
    return [f"address add {net.four(number)}/28 dev {device}",
            *(f"address add {a} dev {device} nodad" for a in six)]  # fmt: skip


def _stays_here(world: World, tag: str) -> None:
    """Would the kernel send these to devices of ours? Raises EngineError where policy routing would not."""
    nets = {
        _bridges(tag)["box"]: world.box,
        _bridges(tag)["control"]: world.control,
        f"bvn{tag}": world.neighbour,
    }
    for device, net in nets.items():
        for address in (net.four(2), *([net.six(2)] if world.ipv6 else [])):
            rows: list[dict[str, Any]] = json.loads(tool(program("ip"), "-j", "route", "get", address))
            if rows[0].get("dev") != device:
                raise EngineError(
                    f"{address} of verify's own would be sent to {rows[0].get('dev')}: nothing was sent",
                    "look at ip rule: a rule before main takes 198.18.0.0/15",
                )


def _open(where: str, world: World, tag: str) -> tuple[Finding, ...]:
    """The way of the box, as a run opens it. Where the wall does not hold there is none."""
    try:
        wall.open_for(where, f"verify{tag}", _bridges(tag)["box"], world.box.four(1), WAY)
        wall.guard_all(where, f"verify{tag}")
    except BawnError as error:
        return (finding("BWN885", "packets", f"no way could be opened: {error.message}"),)
    return ()


def _destroy(where: str, tag: str) -> None:
    """Everything of one verify, whatever there is of it."""
    names = [_ns(tag, who) for who in (*_BOXES, "n")]
    there = [f"netns delete {name}" for name in names if os.path.exists(f"{_NETNS}/{name}")]
    links = [f"link delete {name}" for name in wall_tools.bridges() if name[-6:] == tag and _ours(name)]
    if there or links:
        _ip("", *there, *links, force=True)
    with contextlib.suppress(BawnError):
        wall.close_for(where, f"verify{tag}")


def _ours(name: str) -> bool:
    return name.startswith((f"{PREFIX}v", "bcv", "bv")) and all(c in "0123456789abcdef" for c in name[-6:])


def _sweep(where: str) -> None:
    """What killed verifies left."""
    names = [name.split("-")[2] for name in _listdir(_NETNS) if name.startswith("bawn-wall-")]
    names += [name[-6:] for name in wall_tools.bridges() if _ours(name)]
    names += [way.run.removeprefix("verify") for way in wall.ways(where) if way.run.startswith("verify")]
    for tag in set(names):
        if not os.path.exists(f"/proc/{int(tag, 16)}"):
            _destroy(where, tag)


def _listdir(path: str) -> list[str]:
    return os.listdir(path) if os.path.isdir(path) else []


def _ip(namespace: str, *commands: str, force: bool = False) -> None:
    where = ("-n", namespace) if namespace else ()
    argv = (program("ip"), *(("-force",) if force else ()), *where, "-batch", "-")
    with contextlib.suppress(*([EngineError] if force else [])):
        tool(*argv, given="\n".join([*commands, ""]))


def _inside(namespace: str, *argv: str) -> tuple[str, ...]:
    return (program("nsenter"), f"--net={_NETNS}/{namespace}", *argv) if namespace else argv


def _ask_both(namespace: str, out: tuple[Target, ...], into: tuple[Target, ...]) -> list[list[bool]]:
    """A box asks, and this machine asks a box, at once: silence takes its time."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(_ask, (namespace, ""), (out, into)))


def _ask(namespace: str, targets: tuple[Target, ...]) -> list[bool]:
    given = json.dumps([[[t.proto, t.address, t.port] for t in targets], _SECONDS])
    return list(json.loads(tool(*_inside(namespace, sys.executable, "-IS", _AGENT, "ask"), given=given)))


def _listeners(
    tag: str,
    boxes: tuple[Target, ...],
    twins: tuple[Target, ...],
    into: tuple[Target, ...],
    into_twin: tuple[Target, ...],
) -> list[tuple[str, dict[_Place, Target]]]:
    """(namespace, what listens there, and for which target). On this machine only addresses of verify's
    own devices are listened on; a link-local one is of the asking box's bridge."""
    here: dict[_Place, Target] = {}
    for targets, bridge in ((boxes, _bridges(tag)["box"]), (twins, _bridges(tag)["control"])):
        here |= {(t.proto, t.address.replace("eth0", bridge), t.port): t for t in _at(targets, "here")}
    found = [("", here)]
    for who, targets, at in (
        ("n", boxes, "neighbour"), ("b", boxes, "peer"), ("d", twins, "peer"), ("a", into, "box"),
        ("c", into_twin, "box"),
    ):  # fmt: skip
        found.append((_ns(tag, who), {(t.proto, t.address, t.port): t for t in _at(targets, at)}))
    return found


def _at(targets: tuple[Target, ...], at: str) -> list[Target]:
    """Those of a place that something has to listen for; ICMP is answered by the kernel."""
    return [t for t in targets if t.at == at and t.proto != "icmp"]


class _Listener:
    """Somebody who answers, in one namespace, until the context ends."""

    def __init__(self, namespace: str, places: dict[_Place, Target]) -> None:
        self._places, self._targets = list(places), list(places.values())
        self._argv = _inside(namespace, sys.executable, "-IS", _AGENT, "listen")
        self._stdin, self._stdout, self._pid = -1, -1, 0

    def __enter__(self) -> "_Listener":
        """Raises EngineError where it does not listen."""
        reader, self._stdin = os.pipe()
        self._stdout, writer = os.pipe()
        try:
            self._pid = process.spawn(self._argv, process.tool_environment(), {0: reader, 1: writer})
        finally:
            os.close(reader)
            os.close(writer)
        os.write(self._stdin, json.dumps(self._places).encode() + b"\n")
        if os.read(self._stdout, 6) != b"ready\n":
            self.__exit__()
            raise EngineError("nobody listens in the throw-away namespaces")
        os.set_blocking(self._stdout, False)
        return self

    def came(self) -> set[_Place]:
        """Who was reached so far."""
        try:
            data = os.read(self._stdout, 1 << 16)
        except BlockingIOError:
            return set()
        found = (self._targets[int(line)] for line in data.split())
        return {(t.proto, t.address, t.port) for t in found}

    def __exit__(self, *_: object) -> None:
        for fd in (self._stdin, self._stdout):
            os.close(fd)
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
