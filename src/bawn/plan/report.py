"""What an agent can read, what it can write, and what it never sees, as a tree of text. Pure.

Names in a tree may be an agent's, so control characters are escaped: a file name must not move the
cursor of the person who reads this. Nothing is aligned to the right of a name, so that a wide
character shifts nothing.
"""

from collections.abc import Iterator

from bawn.plan.model import Bind, Finding, Plan, Tmpfs
from bawn.plan.rules import RULES

_RESET = "\x1b[0m"
_COLOURS = {
    "rw": "\x1b[33m",
    "ro": "\x1b[32m",
    "--": "\x1b[90m",
    "error": "\x1b[31m",
    "warning": "\x1b[33m",
    "note": "\x1b[36m",
}
_WHY = {
    "system": "the machine's own programs",
    "workdir": "the work directory",
    "mount": "",
    "write-root": "write root",
    "mask": "masked",
    "protect": "the host runs or obeys it",
    "pin": "cannot be renamed",
    "agent": "the agent's program",
    "git-link": "the repository's git directory",
    "bawn": "bawn's own",
}
_LEGEND = "(rw: reads and writes, ro: reads, --: never sees)"
_FOLDED = ("mask", "protect", "pin")
_LISTED = 12  # masks or protected files below one mount that are shown one by one


class _Node:
    """A mount, and those that lie in it."""

    def __init__(self, mount: Bind | Tmpfs) -> None:
        self.mount = mount
        self.inside: list[_Node] = []


def escaped(text: str) -> str:
    """`text` with everything that a terminal would obey, or show backwards, made visible."""
    if text.isascii() and text.isprintable():
        return text
    out = []
    for char in text:
        point = ord(char)
        hidden = not char.isprintable() and char != " "
        if hidden:
            out.append(f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}")
        else:
            out.append(char)
    return "".join(out)


def boundary(plan: Plan, colour: bool = False) -> list[str]:
    """The lines of `bawn check`: the tree, what is not in it, then the findings."""
    lines = [f"profile {escaped(plan.profile)}: what the agent sees {_LEGEND}", ""]
    for node in _forest(plan):
        lines += _lines(node, "", "", colour)
    for one in plan.tmpfs:
        if one.role == "scratch":
            note = "gone after the run" + (", nothing in it can be run" if one.noexec else "")
            lines.append(f"{_paint('rw', colour)}  {escaped(one.target)}  ({note})")
    lines += ["", "never: " + _never(plan)]
    mounts = {bind.target for bind in plan.binds if bind.role in ("workdir", "mount", "git-link")}
    for guard in plan.guards:
        if guard.root not in mounts:
            continue  # a write root or a pin: the mount that holds it says the same
        names = " ".join(escaped(pattern) for pattern in guard.patterns)
        lines.append(f"never, when made later either: {names} below {escaped(guard.root)}")
    lines += [f"later masks are {text}" for text in dict.fromkeys(g.held_by for g in plan.guards)]
    for path, reason in plan.overrides:
        lines.append(f"override: {escaped(path)}: {escaped(reason)}")
    for path in plan.creates:
        lines.append(f"made before the start: {escaped(path)}")
    lines += ["", *findings(plan.findings, colour)]
    return lines


def findings(several: tuple[Finding, ...], colour: bool = False) -> list[str]:
    """Each finding with its rule, place, reason and fix; then their number."""
    lines = []
    for one in several:
        title = RULES[one.rule].title if one.rule in RULES else ""
        head = f"{one.severity} {one.rule} {title}".rstrip()
        lines.append(_paint(one.severity, colour, head))
        lines.append(f"  at  {escaped(one.place)}")
        lines.append(f"      {escaped(one.message)}")
        if one.rule in RULES:
            lines.append(f"  why {RULES[one.rule].why}")
        if one.fix:
            lines.append(f"  fix {escaped(one.fix)}")
    counts = {name: sum(one.severity == name for one in several) for name in ("error", "warning")}
    lines.append(f"{counts['error']} error(s), {counts['warning']} warning(s)")
    return lines


def _paint(key: str, colour: bool, text: str = "") -> str:
    text = text or key
    return f"{_COLOURS[key]}{text}{_RESET}" if colour else text


def _forest(plan: Plan) -> list[_Node]:
    """Every mount below the innermost one that holds it; mounts come in order of their paths."""
    mounts: list[Bind | Tmpfs] = [bind for bind in plan.binds if bind.role != "bawn"]
    mounts += [one for one in plan.tmpfs if one.role == "mask"]
    mounts.sort(key=lambda mount: mount.target.split("/"))
    roots: list[_Node] = []
    line: list[_Node] = []
    for mount in mounts:
        while line and not mount.target.startswith(line[-1].mount.target.rstrip("/") + "/"):
            line.pop()
        node = _Node(mount)
        (line[-1].inside if line else roots).append(node)
        line.append(node)
    return roots


def _lines(node: _Node, lead: str, above: str, colour: bool) -> Iterator[str]:
    mount = node.mount
    name = mount.target[len(above) :].lstrip("/") if above else mount.target
    mode = "--" if mount.role == "mask" else mount.mode if isinstance(mount, Bind) else "ro"
    why = _WHY.get(mount.role, "")
    if isinstance(mount, Bind) and mount.role != "mask" and mount.source != mount.target:
        why = f"{why}, from {mount.source}".lstrip(", ")
    yield f"{lead}{_paint(mode, colour)}  {escaped(name)}" + (f"  ({escaped(why)})" if why else "")
    left: dict[str, int] = {}
    for child in node.inside:
        role: str = child.mount.role
        left[role] = left.get(role, _LISTED) - 1
        if left[role] >= 0 or role not in _FOLDED or child.inside:
            yield from _lines(child, lead + "    ", mount.target, colour)
    for role, count in left.items():
        if count < 0 and role in _FOLDED:
            yield f"{lead}    ... and {-count} more ({_WHY[role]})"


def _never(plan: Plan) -> str:
    shown = "what is not in this tree: the home directory, /etc, /run, other users' files"
    hidden = sum(bind.role == "mask" for bind in plan.binds)
    hidden += sum(one.role == "mask" for one in plan.tmpfs)
    return f"{shown}" + (f"; {hidden} masked path(s) marked -- above" if hidden else "")
