"""The conversation, played: what reaches a server is what was decided on (corpus E, its protocol half)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bawn.egress.decide import compiled
from tests.playbook.stage import PUBLIC, Stage, ruleset
from tests.unit.test_egress_hello import made, names, real

RULES = ruleset(
    "allowed.test:443", "allowed.test:80", "allowed.test:22", "allowed.test:8080", "inner.test:443"
)
CONNECT = b"CONNECT allowed.test:%d HTTP/1.1\r\nHost: allowed.test:%d\r\n\r\n"
OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"


def connect(port: int, **options: object) -> Stage:
    return Stage(RULES, **options).send(CONNECT % (port, port))  # type: ignore[arg-type]


def get(target: str = "http://allowed.test/a?b", host: str = "allowed.test", more: str = "") -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode()


# --- CONNECT and TLS ---


def test_tls_through() -> None:
    stage = connect(443)
    assert (stage.to_client, stage.asked, stage.dialled) == (OPENED, ["allowed.test"], [(PUBLIC,)])
    stage.send(real())
    assert stage.to_server == real() and stage.join == -1 and stage.talk.address == PUBLIC
    assert stage.rule == "BWN800" and not stage.talk.denied


def test_hello_in_one_piece_with_the_head() -> None:
    stage = Stage(RULES).send(CONNECT % (443, 443) + real())
    assert stage.to_server == real() and stage.join == -1


@given(st.lists(st.integers(1, 700), max_size=8))
def test_split_anywhere(cuts: list[int]) -> None:
    data = CONNECT % (443, 443) + real() + b"early"
    parts, at = [], 0
    for cut in cuts:
        parts.append(data[at : at + cut])
        at += cut
    stage = Stage(RULES).send(*[p for p in parts if p], *([data[at:]] if data[at:] else []))
    assert stage.to_server == real() + b"early" and stage.join == -1


@pytest.mark.parametrize(
    ("hello", "rule"),
    [
        (real("other.test"), "BWN830"),
        (real("inner.test"), "BWN830"),  # listed too, and still not what was asked for
        (real(None), "BWN831"),
        (made(names((0, b"allowed.test")) + b"\xfe\x0d\x00\x01\x00"), "BWN832"),
        (get("/").replace(b"GET", b"get"), "BWN833"),
        (b"\x16\x03\x01\x00\x00", "BWN834"),
        (b"", ""),
        (real()[:100], "late"),
    ],
)
def test_tls_denied(hello: bytes, rule: str) -> None:
    """E14: nothing of it reaches the server."""
    stage = connect(443).send(hello)
    if rule == "late":
        stage.act(lambda talk: talk.late())
        rule = "BWN835"
    assert stage.to_server == b"" and stage.to_client == OPENED and stage.join is None
    assert stage.end == ("reset" if rule else "end")
    assert stage.rule == (rule or "BWN800") and stage.talk.denied == bool(rule)


@pytest.mark.parametrize("target", [
    "other.test:443", "notallowed.test:443", "allowed.test.other.test:443", "allowed.test:444",
    "allowed.test", "allowed.test:0", "allowed.test:65536", "allowed.test:443junk", "127.0.0.1:443",
    "2130706433:443",
    "0x7f.1:443", "[::ffff:a9fe:a9fe]:443", "localhost:443", "169.254.169.254..:80",
    "a@allowed.test:443", "allowed.test/x:443", "*:443", "..:443", "c2VjcmV0.evil.test:443",
])  # fmt: skip
def test_name_denied_before_dns(target: str) -> None:
    """E01, E03, E05, E07, E09, E17, E24: no question, no packet."""
    stage = Stage(RULES).send(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    assert stage.status in (400, 403) and stage.end == "end" and stage.talk.denied
    assert (stage.asked, stage.dialled, stage.to_server) == ([], [], b"")
    assert stage.rule.encode() in stage.to_client


def test_the_answer_names_the_line() -> None:
    body = Stage(RULES).send(b"CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n").to_client
    assert b'add "other.test:443" to allow in profile.build of bawn.toml' in body
    assert b"Proxy-Status: bawn;" in body
    head, _, text = body.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(text)}".encode() in head


def test_one_final_dot_is_the_name() -> None:
    stage = Stage(RULES).send(b"CONNECT Allowed.Test.:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n")
    assert stage.asked == ["allowed.test"]


def test_nothing_listed() -> None:
    """E20."""
    stage = Stage(compiled([])).send(CONNECT % (443, 443))
    assert stage.status == 403 and stage.rule == "BWN803" and stage.asked == []


@pytest.mark.parametrize(
    ("addresses", "rule", "status"),
    [
        (("127.0.0.1",), "BWN820", 403),
        ((PUBLIC, "10.0.0.1"), "BWN820", 403),
        (("::ffff:127.0.0.1",), "BWN820", 403),
        (("::ffff:169.254.169.254",), "BWN820", 403),
        (("nonsense",), "BWN823", 502),
        ((), "BWN822", 502),
        (None, "BWN824", 502),
    ],
)
def test_addresses_denied(addresses: tuple[str, ...] | None, rule: str, status: int) -> None:
    """E08, E11: judged once, and nothing is dialled."""
    stage = connect(443, dns={"allowed.test": addresses})
    assert (stage.rule, stage.status, stage.dialled, stage.end) == (rule, status, [], "end")


def test_nobody_answers() -> None:
    stage = connect(443, answers=False)
    assert (stage.rule, stage.status) == ("BWN850", 502) and b"Connection refused" in stage.to_client


def test_connect_with_a_body() -> None:
    stage = Stage(RULES).send(
        b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 4\r\n\r\nabcd"
    )
    assert stage.rule == "BWN842" and stage.asked == []


# --- absolute-form, and requests in a tunnel ---


def test_absolute() -> None:
    stage = Stage(RULES).send(
        get(more="Accept: */*\r\nProxy-Connection: keep-alive\r\nConnection: x-a\r\nX-A: 1\r\n")
    )
    head = stage.to_server.decode()
    assert head.startswith("GET /a?b HTTP/1.1\r\nHost: allowed.test\r\n") and head.endswith("\r\n\r\n")
    assert "Connection: close" in head and "Accept: */*" in head
    assert "X-A" not in head and "keep-alive" not in head
    assert stage.join == 0 and stage.to_client == b""


@pytest.mark.parametrize(
    ("request_", "rule"),
    [
        (get("http://other.test/"), "BWN801"),  # the name comes first
        (get("http://other.test/", "other.test"), "BWN801"),
        (get(host="other.test"), "BWN841"),  # E16
        (get(host="allowed.test:8080"), "BWN841"),
        (get(more="Host: allowed.test\r\n"), "BWN840"),
        (get("https://allowed.test/"), "BWN843"),
        (get("ftp://allowed.test/"), "BWN843"),
        (get("/"), "BWN843"),
        (get("http://allowed.test:22junk/"), "BWN814"),
        (get("http://u:p@allowed.test/"), "BWN814"),
        (get("http://127.1/", "127.1"), "BWN811"),
        (get("http://allowed.test/#x"), "BWN840"),
        (get(more="Content-Length: 3\r\nContent-Length: 4\r\n"), "BWN840"),
        (get(more="Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), "BWN842"),
        (get(more="Transfer-Encoding: gzip, chunked\r\n"), "BWN840"),
        (get(more="Transfer-Encoding: chunked\r\n").replace(b"HTTP/1.1", b"HTTP/1.0"), "BWN842"),
        (get().replace(b"Host", b"Host "), "BWN840"),
        (b"\x00\x01\x02\x03\r\n\r\n", "BWN840"),
        (b"GET http://allowed.test/ HTTP/2.0\r\n\r\n", "BWN840"),
        (b"GET http://allowed.test/\r\n\r\n", "BWN840"),
        (b"A" * (20 << 10), "BWN840"),
    ],
)  # fmt: skip
def test_absolute_denied(request_: bytes, rule: str) -> None:
    stage = Stage(RULES).send(request_)
    assert stage.rule == rule and stage.status in (400, 403) and stage.end == "end"
    assert (stage.asked, stage.to_server) == ([], b"")


def test_body_with_a_length() -> None:
    post = get(more="Content-Length: 10\r\n").replace(b"GET", b"POST")
    stage = Stage(RULES).send(post + b"abc")
    assert stage.to_server.endswith(b"\r\n\r\nabc") and stage.join == 7
    stage.send(b"defghijGET http://other.test/ HTTP/1.1\r\n\r\n")
    assert stage.to_server.endswith(b"abcdefghij")


def test_a_second_request_is_not_forwarded() -> None:
    stage = Stage(RULES).send(get() + get("http://allowed.test/second"))
    assert b"second" not in stage.to_server and stage.join == 0


def test_chunks_are_made_anew() -> None:
    post = get(more="Transfer-Encoding: chunked\r\n").replace(b"GET", b"POST")
    stage = Stage(RULES).send(
        post + b"3;ext=1\r\nabc\r\n", b"2\r\nde\r\n", b"0\r\nX-T: 1\r\n\r\nGET http://x"
    )
    head, _, body = stage.to_server.partition(b"\r\n\r\n")
    assert b"chunked" in head.lower() and body == b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    assert stage.join == 0 and not stage.end


@pytest.mark.parametrize("broken", [b"zz\r\n", b"-1\r\n", b"3\r\nabcdef", b""])
def test_broken_chunks(broken: bytes) -> None:
    post = get(more="Transfer-Encoding: chunked\r\n").replace(b"GET", b"POST")
    stage = Stage(RULES).send(post + b"3\r\nabc\r\n", broken)
    assert stage.end == "reset" and stage.rule == "BWN840"


def test_plain_in_a_tunnel() -> None:
    stage = connect(80).send(get("/x"))
    assert stage.to_server.startswith(b"GET /x HTTP/1.1\r\n") and stage.join == 0


@pytest.mark.parametrize(
    ("request_", "rule"),
    [
        (get("/", "other.test"), "BWN841"),
        (get("http://other.test/", "other.test"), "BWN843"),
        (real(), "BWN840"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "BWN840"),
    ],
)
def test_plain_in_a_tunnel_denied(request_: bytes, rule: str) -> None:
    stage = connect(80).send(request_)
    assert stage.rule == rule and stage.to_server == b"" and stage.end == "end"


# --- other ports ---


def test_server_first_protocols() -> None:
    stage = connect(22)
    assert stage.join == 0 and not stage.end  # the server's banner passes
    stage.send(b"SSH-2.0-OpenSSH_9.2p1\r\n")
    assert stage.to_server == b"SSH-2.0-OpenSSH_9.2p1\r\n" and stage.join == -1


@pytest.mark.parametrize("first", [
    b"\x00\x00\x00\x08\x04\xd2\x16\x2f", b"*1\r\n$4\r\nPING\r\n", b"EHLO me\r\n",
    b"0032git-upload-pack /p\0host=a\0", b"",
])  # fmt: skip
def test_opaque(first: bytes) -> None:
    stage = connect(22).send(first)
    assert stage.to_server == first and stage.join == -1


@pytest.mark.parametrize("prefix", [b"", b"\r\n", b"\n\n"])
@pytest.mark.parametrize("port", [22, 8080])
def test_http_at_other_ports(prefix: bytes, port: int) -> None:
    """Whichever way it is cut and begun, its Host is looked at."""
    for method in (b"GET", b"FOO", b"g'x"):
        bad = prefix + get("/", "other.test").replace(b"GET", method)
        for parts in ([bad], [bad[:5], bad[5:]], [bad[i : i + 1] for i in range(len(bad))]):
            stage = connect(port).send(*parts)
            assert stage.end == "reset" and stage.to_server == b"" and stage.rule == "BWN841", parts
    good = prefix + get("/", f"allowed.test:{port}")
    assert connect(port).send(good).to_server.startswith(b"GET / HTTP/1.1")


def test_tls_at_other_ports() -> None:
    assert connect(8080).send(real("other.test")).rule == "BWN830"
    assert connect(8080).send(real()[:1], real()[1:]).to_server == real()
    denied = connect(8080).send(real("other.test"))
    assert denied.end == "reset" and denied.to_server == b""


# --- the resolver in the box, time, and another policy ---


def test_resolve() -> None:
    ask = b"RESOLVE %s HTTP/1.1\r\nHost: x\r\nBawn-Way: resolve\r\n\r\n"
    stage = Stage(RULES).send(ask % b"allowed.test")
    assert stage.status == 200 and b"\r\nBawn-Ports: 22,80,443,8080\r\n" in stage.to_client
    denied = Stage(RULES).send(ask % b"c2VjcmV0.evil.test")
    assert denied.status == 403 and denied.rule == "BWN801"
    assert stage.asked == denied.asked == []
    wild = Stage(ruleset("*.allowed.test:443")).send(ask % b"a.b.allowed.test")
    assert b"Bawn-Ports: 443\r\n" in wild.to_client
    assert Stage(RULES).send(ask % b"127.0.0.1").status == 403


def test_transparent() -> None:
    head = b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\nBawn-Way: transparent\r\n\r\n"
    stage = Stage(RULES).send(head)
    assert stage.talk.way == "transparent" and stage.to_client == OPENED


@pytest.mark.parametrize("sent", [b"", b"CONN", b"GET http://allowed.test/ HTTP/1.1\r\nHost: al"])
def test_slow_head(sent: bytes) -> None:
    stage = Stage(RULES)
    stage = (stage.send(sent) if sent else stage).act(lambda talk: talk.late())
    assert stage.status == 408 and stage.rule == "BWN844" and stage.end == "end"


@pytest.mark.parametrize("port", [22, 80, 443])
def test_another_policy_ends_what_it_does_not_allow(port: int) -> None:
    stage = connect(port).act(lambda talk: talk.reload(ruleset("other.test")))
    assert stage.end == ("end" if port == 80 else "reset") and stage.rule == "BWN801" and stage.talk.denied
    kept = connect(port).act(lambda talk: talk.reload(ruleset("other.test", f"allowed.test:{port}")))
    assert not kept.end and not kept.talk.denied


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", CONNECT % (443, 443), CONNECT % (80, 80), CONNECT % (22, 22)]),
)
def test_never_raises(noise: bytes, before: bytes) -> None:
    stage = Stage(RULES).send(*([before] if before else []), *([noise] if noise else []), b"")
    if before != CONNECT % (22, 22):
        assert stage.to_server == b""
