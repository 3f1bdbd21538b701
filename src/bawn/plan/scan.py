"""The scan after a run: what changed of the files that the host runs, and of what masks go by. Pure."""

from bawn.facts.model import Find, TreeFact
from bawn.policy.patterns import Matcher, problem

_ASKED = ("host-exec", "gitfile", "policy", "socket", "device")


def after_run_scan(before: TreeFact, after: TreeFact, allowed: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Paths, each with the reason, of what is new, was replaced, or now leads elsewhere.

    `allowed` is the profile's `host_exec`: what it names may change (a policy never).
    """
    known = {find.path: find for find in before.finds}
    pointers = {one.path: one for one in before.gitfiles}
    matcher = Matcher((p for p in allowed if not problem(p)), after.casefold)
    said = []
    for find in after.finds:
        if find.kind not in _ASKED:
            continue
        inside = find.path[len(after.source) :].lstrip("/")
        if allowed and find.kind != "policy" and _allows(matcher, inside):
            continue
        old = known.get(find.path)
        change = _change(old, find)
        if change:
            said.append(f"{find.path}: {change}; {find.detail or f'a {find.kind}'}")
    left = {find.path: find.target for find in after.finds if find.kind == "mask"}
    for find in before.finds:
        if find.kind == "mask" and find.target not in ("", "?") and left.get(find.path) != find.target:
            said.append(f"{find.path}: a masked link is gone; {find.target} is masked by it alone")
    for one in after.gitfiles:
        if pointers.get(one.path, one) != one:
            said.append(f"{one.path}: points elsewhere; {one.gitdir or 'nowhere'}")
    blind = {one.path for one in before.unreadable}
    said += [f"{one.path}: cannot be looked into" for one in after.unreadable if one.path not in blind]
    said += [
        f"{path[:80]}...: too deep to be looked into"
        for path in after.too_deep
        if path not in before.too_deep
    ]
    return tuple(said)


def _allows(matcher: Matcher, inside: str) -> bool:
    steps = inside.split("/")
    return any(matcher.match(step, "/".join(steps[: at + 1])) is not None for at, step in enumerate(steps))


def _change(old: Find | None, new: Find) -> str:
    if old is None or old.kind != new.kind:
        return "new"
    if old.target != new.target or old.is_dir != new.is_dir:
        return "leads elsewhere" if new.target else "replaced"
    if new.kind != "socket" and old.ino != new.ino:
        return "replaced"
    return ""
