"""The grammar of `allow` (corpus E03, E05, E07, E09, E17, E27, E28)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bawn.policy import hosts

_NO_PORTS = ("", "0", "00443", "65536", "443junk", "-1", "４４３", "4 3", "99999999")
_ADDRESSES = (
    "10.0.0.1", "10.0.0.1:443", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", "0", "1",
    "016777217", "127.0.0.1.", "1.2.3.0x", "a.b.1", "*.0.0.1", "１２７.0.0.1", "::1", "[::1]", "[::1]:443",
    "::ffff:a9fe:a9fe", "fe80::1%eth0",
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "api.example.test",
        "api.example.test:443",
        "API.Example.TEST:8443",
        "api.example.test.",
        "*.example.test:443",
        "*.Allowed.TEST",
        "bücher.test",
        "xn--bcher-kva.test:443",
        "bücher。test",
        "_dmarc.example.test",
        "intranet:8080",
        "0x.test",
        "1and1.test",
        "a" * 63 + ".test",
        *hosts.GROUPS,
    ],
)
def test_allowed(text: str) -> None:
    assert hosts.problem(text) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("*", "every host"),
        ("*:443", "every host"),
        ("*.", "every host"),
        ("*.*", "every host"),
        ("*.com", "top-level"),
        ("*.com.", "top-level"),
        ("*.*.test", "star"),
        ("a.*.test", "star"),
        ("foo*.test", "star"),
        ("*foo.test", "star"),
        ("**.foo.test", "star"),
        ("", "empty"),
        (" ", "no host name"),
        (".test", "no host name"),
        ("a..test", "no host name"),
        ("a.test..", "no host name"),
        ("a" * 64 + ".test", "no host name"),
        ("a." * 127 + "test", "no host name"),
        ("a_b-.test", "no host name"),
        ("a%2e.test", "no host name"),
        ("a：443", "no host name"),
        ("https://allowed.test/x", "URL"),
        ("10.0.0.0/8", "range"),
        ("me@allowed.test", "user"),
        ("@unknown", "not a group"),
        ("@npm:443", "not a group"),
        ("faß.test", "two ways"),
        ("a\u200cb.test", "two ways"),
        ("localhost", "this machine"),
        ("localhost.:80", "this machine"),
        ("db.localhost", "this machine"),
        ("*.localhost", "top-level"),
        *((f"a.test:{port}", "port") for port in _NO_PORTS),
        *(
            (literal, "IP address")
            for literal in _ADDRESSES
        ),
    ],
)  # fmt: skip
def test_refused(text: str, why: str) -> None:
    assert why in hosts.problem(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("https://allowed.test/x?y", "allowed.test"),
        ("https://me:pw@allowed.test:8443/", "allowed.test:8443"),
        ("https://10.0.0.1/", ""),
        ("@nmp", "@npm"),
        ("@GITHUB", "@github"),
        ("*", ""),
    ],
)
def test_meant(text: str, meant: str) -> None:
    assert hosts.meant(text) == meant


@given(st.text() | st.from_regex(r"[*0-9a-fx.:\[\]@/]{0,12}", fullmatch=True))
def test_what_passes_is_a_name(text: str) -> None:
    """No address in any spelling, nothing that matches all, never an exception."""
    if hosts.problem(text) or text.startswith("@"):
        return
    name, _, port = text.partition(":")
    assert not port or 0 < int(port) < 65536
    labels = name.removeprefix("*.").removesuffix(".").split(".")
    assert all(labels)
    assert "*" not in "".join(labels)
    assert not labels[-1].isdigit()
    assert len(labels) > 1 or not name.startswith("*")
