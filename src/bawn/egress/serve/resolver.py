"""DNS through the host's own resolver (resolv.conf(5), hosts(5)), off the event loop.

glibc's getaddrinfo(3) says nothing of a lifetime, so its resolver is asked itself: `res_nsend` of
resolver(3). A query blocks, so it has a thread; questions for one name at one time are one question.
"""

import asyncio
import ctypes
import ctypes.util
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest

from bawn.egress.dns import AAAA, A, Answer, Broken, hosts_file, read_answer
from bawn.typed import NamedTuple

THREADS = 8
KEPT = 1024  # names
LONGEST = 300  # seconds that an answer is kept at most, whatever it says of itself
_HOSTS = "/etc/hosts"
_STATE = 4096  # bytes; struct __res_state has 568
_ANSWER = 1 << 16

Addresses = tuple[str, ...] | None  # None: DNS did not answer


class _Kept(NamedTuple):
    addresses: tuple[str, ...]
    until: float


class Resolver:
    """`lookup(name)` gives (addresses, seconds); it blocks, and runs in a thread."""

    def __init__(self, lookup: Callable[[str], Answer | None] | None = None) -> None:
        self._lookup = lookup or system_lookup()
        self._threads = ThreadPoolExecutor(THREADS, "dns")
        self._kept: dict[str, _Kept] = {}
        self._policy = 0  # counts them: an answer asked for under another one is not kept
        self._waiting: dict[tuple[int, str], list[Callable[[Addresses], None]]] = {}

    def resolve(self, name: str, answer: Callable[[Addresses], None]) -> None:
        """`answer` is called at once, or later from the event loop."""
        loop = asyncio.get_running_loop()
        kept, key = self._kept.get(name), (self._policy, name)
        if kept and kept.until > loop.time():
            answer(kept.addresses)
        elif key in self._waiting:
            self._waiting[key].append(answer)
        else:
            self._waiting[key] = [answer]
            asked = loop.run_in_executor(self._threads, self._lookup, name)
            asked.add_done_callback(lambda done: self._answered(key, done))

    def forget(self) -> None:
        """Nothing is kept across a change of policy, nor what is being asked at this moment."""
        self._kept.clear()
        self._policy += 1

    def _answered(self, key: tuple[int, str], done: "asyncio.Future[Answer | None]") -> None:
        waiting = self._waiting.pop(key)
        answer = None if done.cancelled() or done.exception() else done.result()
        policy, name = key
        if policy == self._policy and answer and answer.ttl > 0 and answer.addresses:
            while len(self._kept) >= KEPT:
                del self._kept[next(iter(self._kept))]
            until = asyncio.get_running_loop().time() + min(answer.ttl, LONGEST)
            self._kept[name] = _Kept(answer.addresses, until)
        for tell in waiting:
            tell(None if answer is None else answer.addresses)


def system_lookup() -> Callable[[str], Answer | None]:
    """Asks /etc/hosts, then DNS, both families. None: no server answered one of the two."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "res_nsend") and not hasattr(library, "__res_nsend"):
        library = ctypes.CDLL(ctypes.util.find_library("resolv"))  # glibc before 2.34
    query = _query(library)

    def lookup(name: str) -> Answer | None:
        try:
            with open(_HOSTS, encoding="utf-8", errors="replace") as file:
                fixed = hosts_file(file.read(), name)
        except OSError:
            fixed = ()
        if fixed:
            return Answer(fixed, 1)
        answers = []
        for kind in (A, AAAA):
            try:
                message = query(name, kind)
                answers.append(None if message is None else read_answer(message, name, kind))
            except Broken:
                answers.append(None)
        told = [answer for answer in answers if answer is not None]
        if len(told) < len(answers) and not any(answer.addresses for answer in told):
            return None
        with_some = [answer for answer in told if answer.addresses]
        ttl = min((answer.ttl for answer in with_some), default=0)
        return Answer(in_turn([answer.addresses for answer in reversed(with_some)]), ttl)

    return lookup


def in_turn(families: list[tuple[str, ...]]) -> tuple[str, ...]:
    """IPv6 first, then by turns (RFC 8305 4): of many addresses only some are tried."""
    rows = zip_longest(*families)
    return tuple(address for row in rows for address in row if address is not None)


def _query(library: ctypes.CDLL) -> Callable[[str, int], bytes | None]:
    def function(name: str, *arguments: object) -> Callable[..., int]:
        found = getattr(library, name, None) or getattr(library, f"__{name}")
        found.argtypes, found.restype = arguments, ctypes.c_int
        return found  # type: ignore[no-any-return]

    p, i, s = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    start, close = function("res_ninit", p), function("res_nclose", p)
    make, send = function("res_nmkquery", p, i, s, i, i, p, i, p, p, i), function("res_nsend", p, p, i, p, i)

    def query(name: str, kind: int) -> bytes | None:
        state = ctypes.create_string_buffer(_STATE)
        if start(state) != 0:  # reads resolv.conf: anew each time, so a change holds at once
            return None
        try:
            question, answer = ctypes.create_string_buffer(512), ctypes.create_string_buffer(_ANSWER)
            size = make(state, 0, name.encode("ascii"), 1, kind, None, 0, None, question, len(question))
            got = send(state, question, size, answer, len(answer)) if size > 0 else -1
            return answer.raw[:got] if 0 < got <= len(answer) else None
        finally:
            close(state)

    return query


def own_addresses() -> tuple[tuple[str, str], ...]:
    """Every address of this host, as `Forbidden.of` takes them: none may be dialled by a name.

    Raises OSError: without this knowledge nothing is dialled at all.
    """
    found = []
    with open("/proc/net/fib_trie", encoding="ascii") as file:
        last = ""
        for line in file:
            word = line.split()
            if word[:1] == ["|--"]:
                last = word[1]
            elif word[:2] == ["/32", "host"]:
                found.append(last)
    if os.path.exists("/proc/net/if_inet6"):  # not there without IPv6
        with open("/proc/net/if_inet6", encoding="ascii") as file:
            rows = [line.split()[0] for line in file]
        found += [":".join(row[at : at + 4] for at in range(0, 32, 4)) for row in rows]
    return tuple((address, "an address of this host itself") for address in dict.fromkeys(found))
