"""The ClientHello reader, on hellos that Python's own TLS made, whole and broken (corpus E14, its core)."""

import ssl
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bawn.egress.decide import Decision, compiled, decide
from bawn.egress.hello import LIMIT, Hello, HelloReader, Trouble, check_hello
from bawn.policy.hosts import HostPattern

NAME = "allowed.test"


@cache
def real(sni: str | None = NAME, version: str = "TLSv1_3") -> bytes:
    """The first bytes of a real client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion[version]
    context.set_alpn_protocols(["h2", "http/1.1"])
    out = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=sni).do_handshake()
    return out.read()


def records(message: bytes, size: int = 1 << 14) -> bytes:
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + len(part).to_bytes(2) + part for part in parts)


def extension(kind: int, value: bytes) -> bytes:
    return kind.to_bytes(2) + len(value).to_bytes(2) + value


def names(*several: tuple[int, bytes]) -> bytes:
    rows = b"".join(bytes([kind]) + len(name).to_bytes(2) + name for kind, name in several)
    return extension(0, len(rows).to_bytes(2) + rows)


def made(extensions: bytes | None, session: int = 32, tail: bytes = b"") -> bytes:
    """A hello of our own, for what no library sends."""
    body = b"\x03\x03" + bytes(32) + bytes([session]) + bytes(session) + b"\x00\x02\x13\x01" + b"\x01\x00"
    body += b"" if extensions is None else len(extensions).to_bytes(2) + extensions
    body += tail
    return records(b"\x01" + len(body).to_bytes(3) + body)


def read(data: bytes) -> Hello | Trouble:
    return HelloReader().feed(data)


def allowed(name: str = NAME) -> Decision:
    decision = decide(compiled([(HostPattern.parse(name), name)]), name, 443)
    assert decision.allowed
    return decision


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
@pytest.mark.parametrize("name", [NAME, "a.very.long.name.of.a.host.allowed.test", "xn--bcher-kva.test"])
def test_a_real_hello(name: str, version: str) -> None:
    assert read(real(name, version)) == Hello(name, False)
    assert read(made(names((0, name.encode())))) == Hello(name, False)
    assert check_hello(allowed(name), read(real(name, version))) == allowed(name)


def test_no_name() -> None:
    for data in (real(None), real("127.0.0.1"), made(None), made(b"")):
        assert read(data) == Hello("", False)


@pytest.mark.parametrize("step", [1, 2, 3, 7, 100])
def test_split_over_segments(step: int) -> None:
    data = real()
    reader = HelloReader()
    for at in range(0, len(data), step):
        assert reader.outcome == "NEED_MORE"
        reader.feed(data[at : at + step])
    assert reader.outcome == Hello(NAME, False)
    assert reader.feed(b"anything") == Hello(NAME, False)


@pytest.mark.parametrize("size", [1, 3, 4, 5, 64])
def test_split_over_records(size: int) -> None:
    assert read(records(real()[5:], size)) == Hello(NAME, False)


def test_early_data_behind_the_hello_is_not_looked_at() -> None:
    assert read(real() + b"\x17\x03\x03\x00\x05hello") == Hello(NAME, False)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"SSH-2.0-x\r\n",
        b"\x80\x2e\x01\x03\x01",
        b"\x16\x02",
        b"\x00",
        b"\x17\x03\x03\x00",
    ],
)
def test_not_tls(data: bytes) -> None:
    assert read(data) == "NOT_TLS"


_SNI = names((0, NAME.encode()))
BROKEN = {
    "empty record": b"\x16\x03\x01\x00\x00",
    "record too long": b"\x16\x03\x01\x40\x01",
    "another message": records(b"\x02" + bytes(8)),
    "alert in the midst": records(real()[5:50]) + b"\x15\x03\x01\x00\x02\x01\x00",
    "message too long": records(b"\x01\xff\xff\xff" + bytes(40)),
    "two messages in one record": records(real()[5:] * 2),
    "version": records(b"\x01\x00\x00\x02\x02\x00"),
    "no random": records(b"\x01\x00\x00\x02\x03\x03"),
    "session id": made(_SNI, session=33),
    "behind the extensions": made(_SNI, tail=b"\0"),
    "two of one extension": made(_SNI + _SNI),
    "two names": made(names((0, NAME.encode()), (0, b"other.test"))),
    "a name of another type": made(names((1, NAME.encode()))),
    "no name in the list": made(extension(0, b"\x00\x00")),
    "an empty extension": made(extension(0, b"")),
    "an empty name": made(names((0, b""))),
    "a name that is not ASCII": made(names((0, "bücher.test".encode()))),
    "cut extension": made(_SNI[:-1]),
}


@pytest.mark.parametrize("what", BROKEN)
def test_malformed(what: str) -> None:
    assert read(BROKEN[what]) == "MALFORMED"
    denied = check_hello(allowed(), read(BROKEN[what]))
    assert (denied.allowed, denied.rule) == (False, "BWN834")


def test_the_size_is_bounded() -> None:
    reader = HelloReader()
    endless = b"\x16\x03\x01\x00\x01\x01" + b"\x16\x03\x01\x00\x01\x00" * LIMIT
    assert reader.feed(endless) == "MALFORMED"
    reader = HelloReader()
    head = b"\x01" + (LIMIT - 1).to_bytes(3)
    for _ in range(1000):
        reader.feed(records(head + bytes(2000)))
        head = b""
        assert len(reader._wire) + len(reader._message) <= LIMIT
    assert reader.outcome == "MALFORMED"


@pytest.mark.parametrize(
    ("outcome", "rule"),
    [
        (Hello("other.test", False), "BWN830"),
        (Hello("nottrusted." + NAME, False), "BWN830"),
        (Hello("8.8.8.8", False), "BWN830"),
        (Hello("..", False), "BWN830"),
        (Hello(NAME + ".", False), "BWN830"),
        (Hello("", False), "BWN831"),
        (Hello(NAME, True), "BWN832"),
        (Hello("", True), "BWN832"),
        ("NOT_TLS", "BWN833"),
        ("MALFORMED", "BWN834"),
        ("NEED_MORE", "BWN835"),
    ],
)
def test_what_is_not_the_name_is_denied(outcome: Hello | Trouble, rule: str) -> None:
    denied = check_hello(allowed(), outcome)
    assert (denied.allowed, denied.rule, denied.fix) == (False, rule, "")
    assert NAME in denied.reason
    if isinstance(outcome, Hello) and rule == "BWN830":
        assert outcome.sni in denied.reason  # both names


def test_case_does_not_matter() -> None:
    assert check_hello(allowed(), Hello("ALLOWED.Test", False)).allowed


def test_a_denial_stays_one() -> None:
    denied = decide(compiled([]), NAME, 443)
    assert check_hello(denied, Hello(NAME, False)) == denied


@pytest.mark.parametrize("kind", [0xFE0D, 0xFFCE])
def test_encrypted_hello(kind: int) -> None:
    assert read(made(_SNI + extension(kind, b"\0" * 40))) == Hello(NAME, True)


@given(st.integers(0, len(real()) - 1))
def test_every_truncation_needs_more(length: int) -> None:
    assert read(real()[:length]) == "NEED_MORE"


_edits = st.lists(st.tuples(st.integers(0, len(real()) - 1), st.integers(0, 255)), min_size=1, max_size=6)


@given(_edits, st.integers(0, 600), st.lists(st.integers(1, 200), max_size=5))
def test_no_mutation_raises_and_none_depends_on_the_segments(
    edits: list[tuple[int, int]], length: int, cuts: list[int]
) -> None:
    data = bytearray(real())
    for at, value in edits:
        data[at] = value
    mutant = bytes(data[:length] if length else data)
    whole = read(mutant)
    reader = HelloReader()
    at = 0
    for cut in [*cuts, len(mutant)]:
        reader.feed(mutant[at : at + cut])
        at += cut
    assert reader.outcome == whole
    assert not check_hello(allowed(), whole).allowed or isinstance(whole, Hello)


@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_raise(data: bytes, framed: bool) -> None:
    outcome = read(records(b"\x01" + len(data).to_bytes(3) + data) if framed else data)
    assert isinstance(outcome, Hello) or outcome in ("NEED_MORE", "NOT_TLS", "MALFORMED")


@given(st.text(st.characters(codec="ascii"), min_size=1, max_size=60))
def test_only_the_name_itself_passes(sni: str) -> None:
    checked = check_hello(allowed(), read(made(names((0, sni.encode())))))
    assert checked.allowed is (sni.lower() == NAME)
