"""What a DNS answer says: addresses and for how long (RFC 1035 4, 3.2.1; RFC 3596). Sans-io.

The answer comes through the host's own resolver, which has held it to the question asked.
"""

from bawn.typed import NamedTuple

A, CNAME, AAAA = 1, 5, 28
_IN = 1
_LINKS = 16  # of a chain of CNAMEs; resolvers give up at about as many


class Answer(NamedTuple):
    """`addresses` in DNS's order; `ttl` in seconds, the least of all that led there."""

    addresses: tuple[str, ...]
    ttl: int


class Broken(ValueError):
    """Not a DNS message, or no answer that can be used."""


def read_answer(message: bytes, name: str, kind: int) -> Answer | None:
    """The addresses of `name` of this kind; none where it has none or does not exist; None where the
    server could not say. Raises Broken."""
    if len(message) < 12:
        raise Broken("shorter than its header")
    flags, questions, answers = (int.from_bytes(message[at : at + 2]) for at in (2, 4, 6))
    code = flags & 15
    if not flags & 0x8000 or flags & 0x0200:
        raise Broken("no response, or one that was cut short")
    if code not in (0, 3):  # RFC 1035 4.1.1: 3 is "no such name"
        return None
    at = 12
    for _ in range(questions):
        _, at = _name(message, at)
        at += 4
    names: dict[str, tuple[str, int]] = {}
    found: dict[str, list[tuple[str, int]]] = {}
    for _ in range(answers):
        owner, at = _name(message, at)
        if at + 10 > len(message):
            raise Broken("a record that ends too early")
        this, of, ttl, size = (
            int.from_bytes(message[at + a : at + b]) for a, b in ((0, 2), (2, 4), (4, 8), (8, 10))
        )
        at += 10
        if at + size > len(message):
            raise Broken("a record that ends too early")
        ttl = 0 if ttl >> 31 else ttl  # RFC 2181 8
        if of == _IN and this == CNAME:
            names.setdefault(owner, (_name(message, at)[0], ttl))
        elif of == _IN and this == kind:
            found.setdefault(owner, []).append((_address(message[at : at + size], kind), ttl))
        at += size
    return _follow(name.lower(), names, found)


def _follow(name: str, names: dict[str, tuple[str, int]], found: dict[str, list[tuple[str, int]]]) -> Answer:
    least = 1 << 31
    for _ in range(_LINKS):
        if name in found:
            rows = found[name]
            return Answer(tuple(text for text, _ in rows), min(least, *(ttl for _, ttl in rows)))
        if name not in names:
            return Answer((), 0)
        name, ttl = names[name]
        least = min(least, ttl)
    raise Broken("a chain of names without an end")


def _name(message: bytes, at: int) -> tuple[str, int]:
    """A name in lower case, and where it ends. A pointer leads only backwards: so it ends."""
    labels: list[bytes] = []
    end, least, length = -1, at, 0
    while True:
        if at >= len(message):
            raise Broken("a name that ends too early")
        size = message[at]
        if size >= 0xC0:
            if at + 2 > len(message):
                raise Broken("a name that ends too early")
            end = at + 2 if end < 0 else end
            at = int.from_bytes(message[at : at + 2]) & 0x3FFF
            if at >= least:
                raise Broken("a name that leads to itself")
            least = at
            continue
        at += 1
        if size == 0:
            return b".".join(labels).decode("latin-1").lower(), at if end < 0 else end
        length += size + 1
        if size > 63 or length > 255 or at + size > len(message):
            raise Broken("a name that is too long")
        labels.append(message[at : at + size])
        at += size


def _address(data: bytes, kind: int) -> str:
    if kind == A and len(data) == 4:
        return ".".join(map(str, data))
    if kind == AAAA and len(data) == 16:
        return ":".join(f"{int.from_bytes(data[at : at + 2]):x}" for at in range(0, 16, 2))
    raise Broken("an address of another size")


def hosts_file(text: str, name: str) -> tuple[str, ...]:
    """What hosts(5) says of a name: it goes before DNS."""
    rows = (line.partition("#")[0].split() for line in text.splitlines())
    return tuple(row[0] for row in rows if name in (word.lower().removesuffix(".") for word in row[1:]))
