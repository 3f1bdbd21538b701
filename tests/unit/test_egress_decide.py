"""The decision on names, ports and addresses (corpus E01 E03 E05 E07 E08 E17 E20 E24 E27 E28 E29)."""

import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bawn.egress.addresses import Forbidden
from bawn.egress.authority import parse_authority
from bawn.egress.decide import Decision, Judged, Ruleset, compiled, decide, decide_authority, judge
from bawn.egress.rules import RULES
from bawn.errors import PolicyError
from bawn.policy import hosts
from bawn.policy.hosts import HostPattern
from bawn.policy.parse import parse_policy


def rules(*lines: str, forbidden: tuple[tuple[str, str], ...] = ()) -> Ruleset:
    return compiled([(HostPattern.parse(line), line) for line in lines], Forbidden.of(forbidden))


def rule(decision: Decision) -> str:
    assert decision.rule in RULES
    assert decision.reason
    assert decision.allowed is (decision.rule == "BWN800") is bool(decision.by)
    return decision.rule


# E01


@pytest.mark.parametrize(
    "look_alike",
    ["nottrusted.test", "untrusted.test", "trusted.test.evil.test", "trusted.testing", "trusted-test",
     "xtrusted.test", "rusted.test", "test", "a.trusted.test"],
)  # fmt: skip
def test_whole_labels_only(look_alike: str) -> None:
    assert rule(decide(rules("trusted.test"), look_alike, 443)) == "BWN801"
    assert rule(decide(rules("trusted.test"), "trusted.test", 443)) == "BWN800"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("a.trusted.test", "BWN800"), ("b.a.trusted.test", "BWN800"), ("trusted.test", "BWN801"),
     ("nottrusted.test", "BWN801"), ("a.nottrusted.test", "BWN801"), (".trusted.test", "BWN813")],
)  # fmt: skip
def test_a_wildcard_is_what_is_below_and_never_the_apex(name: str, wanted: str) -> None:
    assert rule(decide(rules("*.trusted.test"), name, 443)) == wanted


def test_the_closest_line_is_named() -> None:
    ruleset = rules("*.test.test", "*.a.test.test", "b.a.test.test")
    assert decide(ruleset, "b.a.test.test", 443).by == "b.a.test.test"
    assert decide(ruleset, "c.a.test.test", 443).by == "*.a.test.test"
    assert decide(ruleset, "c.test.test", 443).by == "*.test.test"


# E03, E28: one normal form


@pytest.mark.parametrize(
    "spelling", ["allowed.test", "ALLOWED.test", "allowed.test.", "ａllowed.test", "allowed。test"]
)
def test_every_spelling_of_an_allowed_name(spelling: str) -> None:
    decision = decide(rules("Allowed.TEST."), spelling, 443)
    assert rule(decision) == "BWN800"
    assert decision.name == "allowed.test"


def test_unicode_and_punycode_are_one_name() -> None:
    for line, asked in (("bücher.test", "XN--bcher-KVA.test"), ("xn--bcher-kva.test", "BÜCHER.test")):
        assert rule(decide(rules(line), asked, 443)) == "BWN800"


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("blocked.test.", "BWN801"),
        ("BLOCKED.test", "BWN801"),
        ("localhost.", "BWN812"),
        ("LOCALHOST", "BWN812"),
        ("db.localhost", "BWN812"),
        ("metadata.google.internal", "BWN812"),
        ("127.0.0.1.", "BWN811"),
        ("127.0.0.1..", "BWN813"),
        ("169.254.169.254..", "BWN813"),
        ("allowed.test..", "BWN813"),
        ("allowed..test", "BWN813"),
        ("./", "BWN813"),
        ("", "BWN813"),
        ("faß.test", "BWN813"),
    ],
)
def test_no_spelling_dodges(asked: str, wanted: str) -> None:
    assert rule(decide(rules("allowed.test", "*.google.internal"), asked, 443)) == wanted


# E05, E07, E09: numbers and literals, whatever is listed


@pytest.mark.parametrize(
    "literal",
    ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", "2852039166", "3232235521", "0", "1",
     "016777217", "0.0.0.0", "[::ffff:a9fe:a9fe]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:1]", "::1",
     "[64:ff9b::a9fe:a9fe]", "[fd00:ec2::254]", "168.63.129.16", "100.100.100.200"],
)  # fmt: skip
def test_a_special_literal_is_denied_before_any_dns(literal: str) -> None:
    decision = decide(rules("allowed.test"), literal, 443)
    assert rule(decision) == "BWN811"
    assert decision.fix == ""


@pytest.mark.parametrize(
    ("literal", "address"), [("134744072", "8.8.8.8"), ("[2606:4700::1111]", "2606:4700::1111")]
)
def test_a_public_literal_is_denied_for_being_one(literal: str, address: str) -> None:
    decision = decide(rules("allowed.test"), literal, 443)
    assert rule(decision) == "BWN810"
    assert decision.name == address and address in decision.reason


# E17: ports, and the authority


@pytest.mark.parametrize("port", [22, 80, 5432, 65535])
def test_another_port_of_a_listed_host(port: int) -> None:
    decision = decide(rules("allowed.test", "*.allowed.test:8443"), "allowed.test", port)
    assert rule(decision) == "BWN802"
    assert decision.fix == f"allowed.test:{port}"
    assert "443" in decision.reason and "8443" not in decision.reason


@pytest.mark.parametrize("port", [0, -1, 65536, 1 << 40])
def test_no_port(port: int) -> None:
    assert rule(decide(rules("allowed.test"), "allowed.test", port)) == "BWN814"


@pytest.mark.parametrize(
    "text",
    ["", ":443", "allowed.test", "allowed.test:", "allowed.test:0", "allowed.test:65536",
     "allowed.test:443junk", "allowed.test:+443", "allowed.test: 443", "allowed.test:0443",
     "allowed.test:４４３", "me@allowed.test:443", "allowed.test:443@evil.test:443", "allowed.test:80:443",
     "::1:443", "[::1]443", "[::1", "x[::1]:443",
     "allowed.test:443/", "http://allowed.test:443", "allowed.test\\:443", "allowed.test#:443", "a\0b:443",
     "allowed.test:443\r\n", "[]:443]"],
)  # fmt: skip
def test_an_authority_in_doubt_is_denied(text: str) -> None:
    assert rule(decide_authority(rules("allowed.test"), text)) == "BWN814"


def test_authorities() -> None:
    assert parse_authority("allowed.test:8443")[:2] == ("allowed.test", 8443)
    assert parse_authority("allowed.test", 80)[:2] == ("allowed.test", 80)
    assert parse_authority("[::1]:443")[:2] == ("[::1]", 443)
    assert rule(decide_authority(rules("allowed.test"), "ALLOWED.test.:443")) == "BWN800"
    assert rule(decide_authority(rules("allowed.test"), "[::1]:443")) == "BWN811"
    assert rule(decide_authority(rules("allowed.test"), "[allowed.test]:443")) == "BWN813"


# E20, E29


@given(st.text() | st.sampled_from(["allowed.test", "*", "", "localhost", "8.8.8.8"]), st.integers())
def test_an_empty_ruleset_denies_everything(host: str, port: int) -> None:
    for ruleset in (Ruleset(), rules()):
        decision = decide(ruleset, host, port)
        assert not decision.allowed
        assert judge(ruleset, decision, ["8.8.8.8"]) == Judged(decision)


@pytest.mark.parametrize(
    "line",
    ['deny = ["*"]', 'allow = ["*"]', 'allow = ["*.com"]', 'allow = ["foo*.test"]', 'allow = ["*.*.test"]',
     'allow = ["10.0.0.1"]', 'allow = ["10.0.0.0/8"]', 'allow = [""]', 'allow = ["https://allowed.test/x"]',
     'allow = ["localhost:5432"]'],
)  # fmt: skip
def test_no_line_matches_all_or_nothing(line: str) -> None:
    """E27, E28, E29: an error with its line, so that no `deny *` can make an allow-list dead."""
    text = f'version = 1\n[profile.default]\negress = "proxy"\n{line}\n'
    with pytest.raises(PolicyError) as error:
        parse_policy(text, "bawn.toml")
    assert error.value.problems[0].startswith("bawn.toml:4: profile.default.")


def test_the_empty_list_says_so() -> None:
    decision = decide(rules(), "allowed.test", 443)
    assert rule(decision) == "BWN803"
    assert decision.fix == "allowed.test:443"


# E24: the name first


class Resolver:
    """Counts what it is asked."""

    def __init__(self, *addresses: str) -> None:
        self.addresses, self.asked = addresses, 0

    def __iter__(self) -> Iterator[str]:
        self.asked += 1
        return iter(self.addresses)


def test_an_unlisted_name_costs_no_question() -> None:
    dns = Resolver("8.8.8.8")
    ruleset = rules("allowed.test")
    denied = decide(ruleset, "c2VjcmV0.evil.test", 443)
    assert rule(denied) == "BWN801"
    assert judge(ruleset, denied, dns) == Judged(denied)
    assert dns.asked == 0
    assert judge(ruleset, decide(ruleset, "allowed.test", 443), dns).addresses == ("8.8.8.8",)
    assert dns.asked == 1


# E08, E27: addresses


@pytest.mark.parametrize(
    ("addresses", "wanted"),
    [
        (["127.0.0.1"], "BWN820"),
        (["::1"], "BWN820"),
        (["::ffff:127.0.0.1"], "BWN820"),
        (["::ffff:10.0.0.1"], "BWN820"),
        (["8.8.8.8", "::ffff:169.254.169.254"], "BWN820"),
        (["8.8.8.8", "10.0.0.1"], "BWN820"),
        (["10.0.0.1", "8.8.8.8"], "BWN820"),
        (["9.9.9.9"], "BWN821"),
        (["::ffff:9.9.9.9"], "BWN821"),
        (["8.8.8.8", ""], "BWN823"),
        (["8.8.8.8:443"], "BWN823"),
        (["other.test"], "BWN823"),
        ([], "BWN822"),
    ],
)
def test_one_bad_address_denies_all(addresses: list[str], wanted: str) -> None:
    ruleset = rules("allowed.test", forbidden=(("9.9.9.0/24", "the control plane"),))
    judged = judge(ruleset, decide(ruleset, "allowed.test", 443), addresses)
    assert not judged.decision.allowed
    assert judged.decision.rule == wanted
    assert judged.addresses == ()
    assert judged.decision.fix == ""


def test_what_is_checked_is_what_is_dialled() -> None:
    ruleset = rules("allowed.test")
    given_ = ["2606:4700::1111", "8.8.8.8", "::ffff:8.8.8.8", "8.8.4.4"]
    judged = judge(ruleset, decide(ruleset, "allowed.test", 443), given_)
    assert judged.addresses == ("2606:4700::1111", "8.8.8.8", "8.8.4.4")


# What is proposed


_hosts = (
    st.text(max_size=20)
    | st.from_regex(r"(\*\.)?[a-z0-9.*-]{0,12}\.?(test|localhost|internal|[0-9]{0,4})\.?", fullmatch=True)
    | st.sampled_from(sorted(hosts.NEVER))
)
_ports = st.integers(0, 70000) | st.sampled_from([443, 80])


@given(_hosts, _ports)
def test_a_proposed_line_is_accepted_and_allows(host: str, port: int) -> None:
    """And no line is proposed for what is always refused."""
    for ruleset in (Ruleset(), rules("allowed.test", "*.test.test")):
        decision = decide(ruleset, host, port)
        rule(decision)
        if decision.fix:
            assert not decision.allowed
            assert hosts.problem(decision.fix) == ""
            assert decide(rules(decision.fix), host, port).allowed
        elif not decision.allowed:
            assert decision.rule in ("BWN810", "BWN811", "BWN812", "BWN813", "BWN814")


@given(st.text())
def test_any_authority_has_a_decision(text: str) -> None:
    rule(decide_authority(rules("allowed.test"), text))
    rule(decide_authority(rules("allowed.test"), text, 443))


def test_the_cost_does_not_grow_with_the_list() -> None:
    """Flat from 10 to 10,000 rules; a scan of the list would be a thousand times slower."""

    def cost(count: int) -> float:
        lines = [f"h{n}.allowed.test" for n in range(count // 2)] + [
            f"*.w{n}.test" for n in range(count // 2)
        ]
        ruleset = rules(*lines)
        asked = ("h3.allowed.test", "a.b.w4.test", "no.such.host.test")
        best = 1.0
        for _ in range(7):
            start = time.perf_counter()
            for _ in range(100):
                for name in asked:
                    decide(ruleset, name, 443)
            best = min(best, time.perf_counter() - start)
        return best

    assert cost(10_000) < 3 * cost(10)
