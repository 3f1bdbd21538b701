"""A policy, with the machine it is on -> the Guard. Every root, mask and refused place is resolved once."""

import os
from collections.abc import Iterator, Mapping

from bawn.effects.outbound.guard import Guard
from bawn.errors import PolicyError
from bawn.facts.dirs import Dirs
from bawn.facts.paths import Resolver
from bawn.outbound.decide import Mask, Refused, Ruleset
from bawn.outbound.locate import Root
from bawn.policy import pathtext, refused
from bawn.policy.checks import ROOT_FIX
from bawn.policy.lines import line_of
from bawn.policy.model import Policy
from bawn.policy.pathtext import within

# A root in one of these is a mistake; elsewhere in the table of refused places it may be meant (the
# home of root, an agent's cache directory), and only what lies below a root is then refused.
_NEVER = frozenset(("BWN103", "BWN106", "BWN107", "BWN108", "BWN109", "BWN110"))


def load(
    policy: Policy, own: Dirs, text: str = "", base: str = "", environ: Mapping[str, str] | None = None
) -> Guard:
    """The guard of a policy that is trusted. `text` is the policy's own, for the lines of problems;
    `base` is what relative work directories are taken from.

    Raises PolicyError for a root that may not be one; every one of them is named.
    """
    environ = os.environ if environ is None else environ
    home = os.path.expanduser("~")
    resolver = Resolver(home)
    places = list(_refused(resolver, environ, own))
    roots: list[Root] = []
    problems: list[str] = []
    for number, written in enumerate(policy.outbound.roots):
        fact = resolver.resolve(written)
        spelled = os.path.normpath(pathtext.expand(written, home))
        wrong = fact.error or _wrong(fact.kind, fact.path or fact.would_be, resolver, home, places)
        if wrong:
            line = line_of(text, ("outbound", "roots", number)) if text else 0
            place = f"{policy.path}:{line}" if line else policy.path or "the policy"
            fix = f"mkdir -p {written}" if fact.kind == "missing" and not fact.error else ROOT_FIX
            problems.append(f'{place}: outbound.roots[{number}]: got "{written}" ({wrong}); fix: {fix}')
        roots.append(Root(written, spelled, fact.path))
    if problems:
        raise PolicyError(f"{policy.path or 'the policy'} cannot be obeyed here", tuple(problems))
    rules = _ruleset(policy, resolver, tuple(roots), places, base)
    if any(rules.roots):
        rules = _ruleset(policy, resolver, tuple(roots), places, base, dict(_targets(rules)))
    try:
        return Guard(rules, home, policy.outbound.max_size)
    except OSError as error:
        raise PolicyError(f"an outbound root cannot be opened: {error.filename}: {error.strerror}") from None


def _ruleset(
    policy: Policy,
    resolver: Resolver,
    roots: tuple[Root, ...],
    places: list[tuple[str, str, str]],
    base: str,
    targets: Mapping[str, str] | None = None,
) -> Ruleset:
    below = [
        Refused(path, why)
        for _, path, why in places
        if any(within(path, root.real) and path != root.real for root in roots)
    ]
    # Whatever one agent may not read does not leave, whoever names it.
    masks = [Mask(*row) for row in mounts(policy, resolver, base)] if roots else []
    return Ruleset(roots, policy.outbound.deny, masks, below, (targets or {}).items())


def _refused(resolver: Resolver, environ: Mapping[str, str], own: Dirs) -> Iterator[tuple[str, str, str]]:
    """(rule, resolved path, why) of each place that no box is given with all that is in it."""
    for key, path in refused.asked(environ, own):
        row = refused.row(key)
        fact = resolver.resolve(path)
        if row and row.scope == "tree" and not fact.error:
            yield row.rule, fact.path or fact.would_be, row.why


def _wrong(kind: str, real: str, resolver: Resolver, home: str, places: list[tuple[str, str, str]]) -> str:
    """Why the directory may not be a root, or ""."""
    if real == "/":
        return "the whole machine"
    if within(resolver.resolve(home).path or home, real):
        return f"the home directory {home}, or a directory that holds it"
    for rule, path, why in places:
        if rule in _NEVER and within(real, path):
            return f"it lies in {path}: {why}"
        if rule == "BWN110" and within(path, real):
            return f"it holds {path}: {why}"
    if kind == "missing":
        return "there is no such directory"
    return "" if kind == "dir" else "not a directory"


def mounts(policy: Policy, resolver: Resolver, base: str) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """(resolved source, its masks, "profile.NAME") of every mount of every profile."""
    for profile in policy.profiles:
        rows = [(profile.workdir, base, profile.mask)] if profile.workdir else []
        rows += [(mount.source, "", mount.mask) for mount in profile.mounts]
        for source, under, mask in rows:
            fact = resolver.resolve(source, under)
            path = fact.path or fact.would_be or pathtext.expand(source, resolver.home, under or "/")
            yield path.rstrip("/"), mask, f"profile.{profile.name}"


def _targets(rules: Ruleset) -> Iterator[tuple[str, str]]:
    """Links in the roots whose names are hidden, as (what each leads to, the link): the mask of a
    link is a mask of its target. As they are now: a link that is made later is not looked for."""
    for root in rules.roots:
        todo = [root.real]
        while todo:
            try:
                with os.scandir(todo.pop()) as entries:
                    for entry in entries:
                        if entry.is_symlink():
                            if rules.hidden(entry.path):
                                yield os.path.realpath(entry.path), entry.path
                        elif entry.is_dir(follow_symlinks=False):
                            todo.append(entry.path)
            except OSError:
                continue  # what cannot be listed here cannot be opened either
