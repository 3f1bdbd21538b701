"""The address classifier: every special range, every wrapper, against `ipaddress` (corpus E05, E07-E09)."""

import ipaddress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bawn.egress.addresses import Forbidden, classify
from bawn.egress.ranges import CARRIES, V4, V6, Range

# Ranges that IANA calls globally reachable, and that hold no service a box needs.
STRICTER = ("AS112", "multicast tunnelling", "6to4", "6to4 relays", "6bone", "multicast", "NAT64", "ORCHIDv2",
            "IETF protocol assignments", "Azure WireServer", "site-local", "segment routing", "documentation",
            "dummy", "IPv4-compatible", "IPv4-translated", "Teredo", "not given out")  # fmt: skip
BAD_V4 = ("127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "192.168.1.1", "0.0.0.0", "168.63.129.16")


def wraps(v4: str) -> dict[str, str]:
    """An IPv4 address in every form that carries one."""
    number = int(ipaddress.IPv4Address(v4))
    high, low = number >> 16, number & 0xFFFF
    tail = f"{high:x}:{low:x}"
    return {
        "mapped": f"::ffff:{tail}",
        "mapped, dotted": f"::ffff:{v4}",
        "mapped, written out": f"0:0:0:0:0:ffff:{tail}",
        "compatible": f"::{tail}",
        "translated": f"::ffff:0:{tail}",
        "NAT64": f"64:ff9b::{tail}",
        "local NAT64 /96": f"64:ff9b:1::{tail}",
        "local NAT64 /48": f"64:ff9b:1:{high:x}:{low >> 8:x}:{(low & 0xFF) << 8:x}::",
        "6to4": f"2002:{tail}::1",
        "Teredo": f"2001:0:808:808:8000:63bf:{high ^ 0xFFFF:x}:{low ^ 0xFFFF:x}",
        "ISATAP": f"2606:4700::5efe:{tail}",
        "ISATAP, universal": f"2606:4700::200:5efe:{tail}",
    }


@pytest.mark.parametrize("row", V4 + V6, ids=lambda row: row.network)
def test_first_and_last_of_every_range(row: Range) -> None:
    assert row.source and row.what
    net = ipaddress.ip_network(row.network)
    for address in (net[0], net[-1]):
        verdict = classify(str(address))
        assert not verdict.public or row.what in CARRIES, verdict
    assert row.what in classify(str(net[-1])).problem or row.kind == "wrapper" or net.prefixlen < 32


@pytest.mark.parametrize("bad", BAD_V4)
@pytest.mark.parametrize("form", wraps("1.2.3.4"))
def test_what_is_wrapped_is_judged(bad: str, form: str) -> None:
    """Corpus E08, E09: by kind, not by the one spelling."""
    verdict = classify(wraps(bad)[form])
    assert not verdict.public
    inner = classify(bad).problem.partition(": ")[2]
    compatible = form == "compatible" and bad == "0.0.0.0"  # that is `::` itself
    assert compatible or inner in verdict.problem, verdict


@pytest.mark.parametrize(
    ("form", "public"),
    [("mapped", "8.8.8.8"), ("NAT64", "64:ff9b::808:808"), ("ISATAP", "2606:4700::5efe:808:808"),
     ("6to4", ""), ("Teredo", ""), ("compatible", ""), ("translated", ""), ("local NAT64 /96", "")],
)  # fmt: skip
def test_a_public_address_in_a_wrapper(form: str, public: str) -> None:
    """Through a wrapper that carries traffic today it passes, through an abandoned one it does not."""
    verdict = classify(wraps("8.8.8.8")[form])
    assert (verdict.address if verdict.public else "") == public


@pytest.mark.parametrize("text", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "2a00:1450::1", "168.63.129.15"])
def test_public(text: str) -> None:
    assert classify(text).public and classify(text).address == text


@pytest.mark.parametrize(
    "text",
    ["", " ", "a.test", "8.8.8.8 ", "8.8.8", "08.8.8.8", "[::1]", "8.8.8.8:443", "2606::%1", "fe80::1%eth0",
     "８.8.8.8", "2130706433", "::ffff:8.8.8.8.8", "\ud800"],
)  # fmt: skip
def test_what_does_not_parse_is_denied(text: str) -> None:
    """Corpus E08: a text that the check cannot split must not skip the check."""
    assert classify(text).problem == "no address" and classify(text).address == ""


@pytest.mark.parametrize("own", ["9.9.9.9", "9.9.9.0/24", "::ffff:9.9.9.0/120", "2620:fe::/48"])
def test_the_callers_own_networks(own: str) -> None:
    forbidden = Forbidden.of([(own, "the control plane")])
    inside = "2620:fe::9" if "fe" in own and "ffff" not in own else "9.9.9.9"
    texts = [inside] if ":" in inside else [inside, *wraps(inside).values()]
    for text in texts:
        verdict = classify(text, forbidden)
        assert verdict.own and "the control plane" in verdict.problem, text
    assert classify("9.9.10.9", forbidden).public


def test_a_network_that_does_not_parse_raises() -> None:
    with pytest.raises(ValueError, match=r"1\.2\.3"):
        Forbidden.of([("1.2.3/40", "deny")])


_addresses = st.ip_addresses() | st.sampled_from(V4 + V6).flatmap(
    lambda r: st.ip_addresses(network=r.network)
)


@given(_addresses)
def test_against_ipaddress(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    """Never laxer than the standard library; stricter only where this file says so."""
    verdict = classify(str(address))
    inner = getattr(address, "ipv4_mapped", None) or address
    if verdict.public:
        wrapped = inner in ipaddress.ip_network("64:ff9b::/96")  # 3.11 knows no NAT64
        assert wrapped or (inner.is_global and not inner.is_multicast and not inner.is_reserved)
    elif inner.is_global:
        assert any(why in verdict.problem for why in STRICTER) or "holding" in verdict.problem, verdict


@given(st.text() | st.from_regex(r"[0-9a-f:.%\[\]/]{0,40}", fullmatch=True))
def test_any_text_has_a_verdict(text: str) -> None:
    verdict = classify(text)
    assert verdict.public is (verdict.problem == "")
    if verdict.public:
        assert ipaddress.ip_address(verdict.address)


def test_the_tables_name_no_range_twice() -> None:
    rows = sorted(row.network for row in V4 + V6)
    assert all(one != other for one, other in pairwise(rows))
