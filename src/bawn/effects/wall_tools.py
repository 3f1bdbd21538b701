"""nft and both back-ends of iptables: what is loaded, what a text would become, and loading it.

Everything is of the network namespace that bawn runs in. What a tool would make of a text is asked in an
empty namespace, which ends with the question.
"""

import os
import socket
import struct

from bawn.effects import process
from bawn.errors import EngineError, HostError
from bawn.facts import programs
from bawn.plan import nft_json, wall_docker, xtables
from bawn.plan.wall import FAMILIES, TABLE, Wall, ruleset
from bawn.plan.wall_check import Backend, Seen
from bawn.plan.wall_docker import Place

_TIMEOUT = 30.0
_CAP = 32 << 20  # bytes of a ruleset
_CUT = "--- next table ---"
# Loads its stdin, then lists each table of the wall; $1 is nft.
_LIST = (
    f'"$1" -f - && "$1" -s -t list table inet {TABLE} &&'
    f' echo "{_CUT}" && "$1" -s -t list table bridge {TABLE}'
)
_IBRNAME = 'table bridge x { chain f { type filter hook forward priority 0; meta ibrname "x*" drop; }; }'
_SAVE = {"nft": ("-nft-save", "-save"), "legacy": ("-legacy-save",)}
_RESTORE = {"nft": ("-nft-restore", "-restore"), "legacy": ("-legacy-restore",)}


def program(*names: str) -> str:
    """The first of these that root alone can change, by its own name: iptables' programs are one, which
    goes by the name that it is called by. Raises HostError."""
    search = os.environ.get("PATH", "")
    for name in names:
        if found := programs.find(name, search):
            paths = (f"{d}/{name}" for d in (*programs.SYSTEM, *search.split(":")))
            return next((path for path in paths if os.path.realpath(path) == found), found)
    raise HostError(f"{names[0]} is not installed", "sudo apt-get install nftables iptables iproute2")


def tool(*argv: str, given: str = "") -> str:
    """stdout. Raises EngineError where the tool says no."""
    done = process.run(argv, timeout=_TIMEOUT, input=given.encode(), cap=_CAP)
    if done.code != 0:
        raise EngineError(f"{os.path.basename(argv[0])}: {_first(done.err)}", process.paste(argv))
    return done.text


def _first(said: bytes) -> str:
    """The first line: those after it of nft point at a place in it."""
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[0] if lines else "it failed without a word"


def need_root() -> None:
    """Raises HostError."""
    if os.geteuid() != 0:
        raise HostError("the wall is root's: rules are read and changed by root alone", "sudo bawn wall ...")


def has_ibrname() -> bool:
    """Can this kernel match the name of a bridge in its frames? Asked, not loaded."""
    argv = (program("unshare"), "--net", "--", program("nft"), "--check", "-f", "-")
    return process.run(argv, timeout=_TIMEOUT, input=_IBRNAME.encode()).code == 0


def load(text: str) -> None:
    """One transaction: all of it, or nothing. Raises EngineError."""
    tool(program("nft"), "-f", "-", given=text)


def planned(wall: Wall) -> dict[str, str]:
    """The tables of the wall as nft here lists them, without elements. Raises EngineError."""
    nft = program("nft")
    listed = tool(program("unshare"), "--net", "--", "/bin/sh", "-c", _LIST, "sh", nft, given=ruleset(wall))
    return dict(zip(FAMILIES, (part.strip() for part in listed.split(_CUT)), strict=True))


def seen() -> Seen:
    """What is loaded here. Raises EngineError, also for an answer that cannot be read."""
    nft = program("nft")
    try:
        loaded = nft_json.parse(tool(nft, "-j", "list", "ruleset"))
    except ValueError as error:
        raise EngineError(f"nft -j list ruleset: {error}") from None
    there = [family for family in FAMILIES if (family, TABLE) in loaded.tables]
    listing = ((f, tool(nft, "-s", "-t", "list", "table", f, TABLE).strip()) for f in there)
    return Seen(loaded, tuple(listing))


def backends() -> tuple[tuple[Backend, ...], tuple[str, ...]]:
    """The filter tables of iptables, by back-end and family; and what could not be read.

    The legacy tool makes the table that it looks for, so it is asked only where the kernel names one.
    """
    found, problems = [], []
    for family, names in ((wall_docker.V4, "ip_tables_names"), (wall_docker.V6, "ip6_tables_names")):
        for backend in ("nft", "legacy"):
            if backend == "legacy" and not _legacy(names):
                continue
            try:
                text = tool(program(*(f"{family}tables{end}" for end in _SAVE[backend])))
                if "`filter' is incompatible" in text:
                    raise ValueError("the filter table holds what iptables cannot show")
                found.append(Backend(backend, family, xtables.parse(text)))
            except (HostError, EngineError) as error:
                problems.append(f"{family}tables ({backend}): {error.message}")
            except ValueError as error:
                problems.append(f"{family}tables ({backend}): {error}")
    return tuple(found), tuple(problems)


def _legacy(names: str) -> bool:
    try:
        with open(f"/proc/self/net/{names}") as file:
            return "filter" in file.read().split()
    except OSError:
        return False


def restore(place: Place, text: str) -> None:
    """One transaction of one back-end. Raises EngineError."""
    tool(_restorer(place), "--noflush", "--wait", "5", given=text)


def layer(wall: Wall, place: Place) -> tuple[str, ...]:
    """The rules of the second layer as this back-end writes them. Raises EngineError."""
    save = program(*(f"{place.family}tables{end}" for end in _SAVE[place.backend]))
    script = '"$1" --noflush --wait 5 && exec "$2" -t filter'
    text = tool(program("unshare"), "--net", "--", "/bin/sh", "-c", script, "sh", _restorer(place), save,
                given=wall_docker.alone(wall, place))  # fmt: skip
    return tuple(rule.text for rule in xtables.parse(text).chains[wall_docker.CHAIN])


def _restorer(place: Place) -> str:
    return program(*(f"{place.family}tables{end}" for end in _RESTORE[place.backend]))


_NETLINK_NETFILTER = 12
_GETGEN = 10 << 8 | 16  # NFNL_SUBSYS_NFTABLES, NFT_MSG_GETGEN (linux/netfilter/nf_tables.h)


def generation() -> int:
    """The number that the kernel raises with every change of its nftables, of whomever. 10 µs.

    Raises EngineError.
    """
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_NETFILTER) as s:
            s.settimeout(5)
            s.sendto(struct.pack("=IHHIIBBH", 20, _GETGEN, 1, 1, 0, 0, 0, 0), (0, 0))
            reply = s.recv(4096)
        at = 20  # after the headers: attributes, of which NFTA_GEN_ID is 1
        while at + 4 <= len(reply):
            size, kind = struct.unpack_from("=HH", reply, at)
            if kind & 0x3FFF == 1:
                return int(struct.unpack_from("!I", reply, at + 4)[0])
            at += max(size + 3 & ~3, 4)
    except (OSError, struct.error) as error:
        raise EngineError(f"the kernel does not tell the generation of its rules: {error}") from None
    raise EngineError("the kernel does not tell the generation of its rules")


def bridges() -> frozenset[str]:
    """The interfaces of this namespace."""
    return frozenset(name for _, name in socket.if_nameindex())


def ports_of(bridge: str) -> tuple[str, ...]:
    """The ports of a bridge. Raises EngineError."""
    import json

    rows = json.loads(tool(program("ip"), "-j", "link", "show", "master", bridge) or "[]")
    return tuple(sorted(str(row["ifname"]) for row in rows))
