"""What a box asks for in the lab: the list of everything that it must not reach, and the listed host.

The scripts run in the box, with no library but Python's.
"""

import json
import time
from collections.abc import Callable

from bawn.proof.world import HOSTS, LINK

# In the box, with no library but Python's: {label: what happened} for [[label, proto, address, port]].
ASK = """
import concurrent.futures, json, socket, ssl, sys
QUESTION = b"\\x09forbidden\\x04test\\x00\\x00\\x01\\x00\\x01"  # DNS, of type A
def tcp(address, port):
    with socket.create_connection((address, port), 1.5):
        return "open"
def udp(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(1.5)
        s.connect((address, port))
        s.send(bytes.fromhex("abcd01000001000000000000") + QUESTION)
        return "open" if s.recv(512) else "?"
def icmp(address, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as s:
        s.settimeout(1.5)
        s.sendto(b"\\x08\\x00\\xf7\\xfd\\x00\\x01\\x00\\x01", (address, 0))
        return "open" if s.recv(512) else "?"
def raw(address, port):
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP):
        return "open"
def ask(row):
    try:
        return row[0], globals()[row[1]](*row[2:])
    except OSError as error:
        return row[0], type(error).__name__
with concurrent.futures.ThreadPoolExecutor(32) as pool:
    print(json.dumps(dict(pool.map(ask, json.loads(sys.argv[1])))))
"""
GET = """
import ssl, sys, urllib.request
context = ssl.create_default_context(cafile="ca.pem")
opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), *(
    [urllib.request.ProxyHandler({})] if sys.argv[2:] else []))
try:
    print(opener.open("https://" + sys.argv[1] + "/", timeout=10).read().decode().strip())
except OSError as error:
    print("no:", error)
"""

# The box's own gateway, and whoever else could be on its bridge.
OWN = """
import json, socket, struct
rows = [line.split() for line in open("/proc/net/route").read().splitlines()[1:]]
found = {}
for net in (struct.pack("<I", int(row[1], 16)) for row in rows):
    for last, port in ((1, 22), (1, 8099), (1, 2375), (3, 8099), (254, 8099)):
        address = socket.inet_ntoa(net[:3] + bytes([last]))
        try:
            socket.create_connection((address, port), 1).close()
            found[f"{address} {port}"] = "open"
        except OSError as error:
            found[f"{address} {port}"] = type(error).__name__
print(json.dumps(found))
"""


def targets(gateway: str, peer: str = "") -> list[tuple[str, str, str, int]]:
    """Everything that a box must not reach."""
    rows = []
    for host in (h for h in HOSTS if h.kind != "resolver"):
        for address in host.addresses:
            rows += [("tcp", address, 80), ("tcp", address, 22), ("udp", address, 443)]
            rows += [("icmp", address, 0)] if ":" not in address else []
    for address in ("93.184.216.53", "2606:2800:220:66::53"):
        rows += [("udp", address, 53), ("tcp", address, 53)]
    rows += [(proto, address, 8099) for address in (*own_addresses(), gateway) for proto in ("tcp", "udp")]
    rows += [("icmp", gateway, 0), ("tcp", "fe80::1%eth0", 8099)]
    rows += [("tcp", peer, 7000)] if peer else []
    return [(f"{proto} {address} {port}", proto, address, port) for proto, address, port in rows]


def own_addresses() -> list[str]:
    """Of the host, towards the world."""
    return [text.partition("/")[0] for text in LINK["host"]]


LISTEN = """
import socket, sys, threading
def echo(s):
    while True:
        data, peer = s.recvfrom(512)
        s.sendto(b"here", peer)
# Also at the address itself: a reply of UDP comes from the one that was asked.
for address in ("0.0.0.0", *sys.argv[1:], "::"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        s = socket.socket(family, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if kind == socket.SOCK_STREAM and address in sys.argv:
            continue
        s.bind((address, 8099))
        if kind == socket.SOCK_STREAM:
            s.listen()
        else:
            threading.Thread(target=echo, args=(s,), daemon=True).start()
        globals()[f"keep{address}{kind}"] = s
print("ready", flush=True)
sys.stdin.read()
"""


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def answers(text: str) -> dict[str, str]:
    return dict(json.loads(text))
