"""Every finding about the wall: BWN86x the tables, BWN87x what is beside them, BWN88x
packets, BWN89x the rest.

`docs/wall.md` shows this table (a test holds it to it). One of severity error means that the wall does
not hold: no run with `egress = "bridge"` starts, and one that runs is ended.
"""

from bawn.plan.model import Finding, Severity
from bawn.typed import NamedTuple


class Rule(NamedTuple):
    severity: Severity
    what: str
    fix: str


_APPLY = "sudo bawn wall apply"
_WHO = "find who flushed it (firewalld, ufw, a script), then: sudo bawn wall apply"

RULES: dict[str, Rule] = {
    "BWN860": Rule("error", "the table inet bawn_wall is not loaded: nothing is denied", _WHO),
    "BWN861": Rule("error", "the table bridge bawn_wall is not loaded: boxes on one bridge may talk", _WHO),
    "BWN862": Rule("error", "a table of the wall is not as planned: a rule, hook or policy differs", _APPLY),
    "BWN863": Rule("error", "a table of the wall is there, and empty: it was flushed", _WHO),
    "BWN864": Rule("error", "something is open that no run has opened", _APPLY),
    "BWN865": Rule("error", "an element of a run is gone: its way is closed, or its port unguarded",
                   "end the run; sudo bawn wall apply"),
    "BWN866": Rule("error", "the wall was applied from another policy, or by another version", _APPLY),
    "BWN870": Rule("warning", "the second layer is unreachable: no chain of the hook leads to it",
                   "start docker, which makes the jump to DOCKER-USER, then: sudo bawn wall apply"),
    "BWN871": Rule("warning", "the second layer is not there", _APPLY),
    "BWN872": Rule("warning", "the second layer is shadowed: an earlier rule may let packets of boxes pass",
                   "sudo bawn wall apply puts the jump first; a rule before DOCKER-USER is for its owner"),
    "BWN873": Rule("warning", "the second layer is not as planned", _APPLY),
    "BWN874": Rule("warning", "rules in both back-ends of iptables: each tool shows half of them",
                   "move them to one: iptables-save, update-alternatives --config iptables"),
    "BWN875": Rule("error", "a tool that shows the rules does not answer, or not as expected",
                   "make it work as root: what cannot be read is not known to hold"),
    "BWN876": Rule("warning", "a foreign chain drops what comes in: the way to the proxy may be closed",
                   "let it accept tcp from bwn* to the proxy's port"),
    "BWN877": Rule("warning", "a foreign flowtable carries flows past the wall's forward chain",
                   "take bwn* out of it"),
    "BWN878": Rule("warning", "a back-end of iptables cannot be read: nor the second layer in it",
                   "make its command work as root"),
    "BWN880": Rule("error", "a packet of a box reached what it must not",
                   "end all runs; look at the rules above"),
    "BWN881": Rule("error", "the proxy's address and port do not answer a box, or its replies are lost",
                   "look for a foreign chain that drops at the hook input"),
    "BWN882": Rule("error", "two boxes on one bridge can talk", _APPLY),
    "BWN883": Rule("error", "IPv6 of a box reached somebody", _APPLY),
    "BWN884": Rule("error", "a new connection into a box passed that nobody published", _APPLY),
    "BWN885": Rule("error", "the packets could not be sent: nothing is proved",
                   "mend what it names; try again"),
    "BWN886": Rule("note", "without the wall it does not pass here either: no proof of it", "none"),
    "BWN890": Rule("warning", "the boot unit is not as planned: after a boot there is no wall",
                   "sudo bawn wall apply --boot"),
    "BWN891": Rule("error", "the wall was never applied here", _APPLY),
}  # fmt: skip


def finding(rule: str, place: str, message: str = "") -> Finding:
    """A finding by its rule; without a message it says what the rule says."""
    row = RULES[rule]
    return Finding(rule, row.severity, place, message or row.what, "" if row.fix == "none" else row.fix)


def holds(findings: tuple[Finding, ...]) -> bool:
    return all(one.severity != "error" for one in findings)
