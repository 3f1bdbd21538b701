"""`bawn run --learn`: what the run used of its way out and was refused, as a change of its `allow`."""

from bawn.cli.prepare import Prepared, say
from bawn.egress.learn import as_diff, propose
from bawn.evidence import passages


def tell(ready: Prepared, run: str) -> None:
    """On stderr, for a person to decide on. Nothing is changed."""
    try:
        found = propose(ready.profile.allow, passages.of_run(ready.facts.state, run))
    except OSError as error:
        say(f"learn: cannot read {passages.log_of(ready.facts.state)}: {error.strerror}")
        return
    for name, why in found.never:
        say(f"learn: never allowed: {name}: {why}")
    diff = as_diff(ready.profile.allow, found)
    if not diff:
        say("learn: the run used every line of allow, and was refused nothing that a line could allow")
        return
    where = f"profile.{ready.profile.name} of {ready.policy.path or 'a new bawn.toml (bawn init)'}"
    say(f"learn: for this run alone the narrowest list, in {where}:")
    for row in ("allow = [", *diff, "]"):
        say(f"  {row}")
