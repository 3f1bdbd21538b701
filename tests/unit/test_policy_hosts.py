"""The grammar of `allow` (corpus E03, E05, E07, E09, E17, E27, E28)."""

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bawn.errors import PolicyError
from bawn.policy import hosts
from bawn.policy.hosts import Host, HostPattern

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
        ("localhost.localdomain", "this machine"),
        ("metadata.google.internal", "metadata"),
        ("*.metadata.goog:80", "metadata"),
        ("printer.local", "local network"),
        ("none.invalid", "does not exist"),
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


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("API.Example.TEST", "api.example.test"),
        ("api.example.test.", "api.example.test"),
        ("bücher.test", "xn--bcher-kva.test"),
        ("BÜCHER。test．", "xn--bcher-kva.test"),
        ("XN--BCHER-KVA.test", "xn--bcher-kva.test"),
        ("Ｅxample.test", "example.test"),
        ("ｌocalhost", "localhost"),
        ("0x.test", "0x.test"),
    ],
)
def test_one_normal_form_of_a_name(text: str, name: str) -> None:
    assert hosts.normalise(text) == Host(name=name)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0X7F.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("１２７.0.0.1", "127.0.0.1"),
        ("2852039166", "169.254.169.254"),
        ("3232235521", "192.168.0.1"),
        ("134744072", "8.8.8.8"),
        ("0", "0.0.0.0"),
        ("1", "0.0.0.1"),
        ("016777217", "0.59.254.143"),
        ("192.168.257", "192.168.1.1"),
        ("[::1]", "::1"),
        ("0:0:0:0:0:FFFF:7f00:1", "::ffff:7f00:1"),
    ],
)
def test_a_number_is_an_address(text: str, address: str) -> None:
    assert hosts.normalise(text).address == str(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "text",
    ["", ".", "..", "a..b", "a.b..", "127.0.0.1..", "localhost..", ".a", "./", "a b", "a\n", "a\0", "-a.test",
     "256.1.1.1", "4294967296", "08.1", "1.2.3.4.5", "a.1", "1.2.3.0x100", "[::1", "::1]", "fe80::1%eth0",
     "::g", "[a.test]", "a.test:1", "faß.test", "x" * 64 + ".test", "\ud800.test"],
)  # fmt: skip
def test_neither_name_nor_address(text: str) -> None:
    host = hosts.normalise(text)
    assert host.problem and not host.name and not host.address


_numberish = st.from_regex(r"(0x)?[0-9a-f]{1,11}(\.(0x)?[0-9a-f]{0,4}){0,4}\.?", fullmatch=True)


@given(_numberish)
def test_numbers_are_read_as_the_c_library_reads_them(text: str) -> None:
    """What inet_aton(3) takes for an address is never a name, and is that address."""
    try:
        wanted = socket.inet_ntoa(socket.inet_aton(text.removesuffix(".")))
    except OSError:
        return
    assert hosts.normalise(text).address == wanted


@given(st.text() | _numberish)
def test_the_normal_form_is_normal(text: str) -> None:
    host = hosts.normalise(text)
    assert sum(map(bool, host)) == 1
    if host.name:
        assert hosts.normalise(host.name) == host
        assert hosts.normalise(host.name.upper() + ".") == host
    if host.address:
        assert hosts.normalise(str(ipaddress.ip_address(host.address))) == host


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("API.example.test.", HostPattern("api.example.test", False, 443)),
        ("*.bücher.test:8443", HostPattern("xn--bcher-kva.test", True, 8443)),
    ],
)
def test_a_pattern(text: str, pattern: HostPattern) -> None:
    assert HostPattern.parse(text) == pattern
    assert HostPattern.parse(str(pattern)) == pattern


@pytest.mark.parametrize("text", ["", "*", "@npm", "10.0.0.1", "localhost", "a.test:0", "https://a.test/x"])
def test_no_pattern(text: str) -> None:
    with pytest.raises(PolicyError, match="no host of an allow-list"):
        HostPattern.parse(text)


@pytest.mark.parametrize("name", hosts.NEVER)
def test_what_is_never_allowed_is_not_below_it_either(name: str) -> None:
    assert hosts.never(name) and hosts.never(f"a.b.{name}")
    assert not hosts.never(f"{name}.test") and not hosts.never(f"x{name}")
