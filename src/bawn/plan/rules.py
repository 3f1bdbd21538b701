"""Every finding about a mount list: what it is called, why it matters, what to do about it.

BWN1xx refused paths, 2xx sources and targets, 3xx masks, 4xx files the host runs, 5xx ownership,
6xx git directories, 7xx the run itself. `docs/mounts.md` shows this table (a test holds it to it).
"""

from bawn.plan.model import Finding
from bawn.plan.run_rules import RUN_RULES, Rule

_LIFT = (
    "mount a directory that neither holds it nor lies in it; if it must be, "
    '[[profile.NAME.override]] path = "{refused}" with a reason'
)
_NEVER = "mount a directory that neither holds it nor lies in it; no override lifts this"

RULES: dict[str, Rule] = {
    # Refused paths
    "BWN101": Rule("error", "the whole machine", "it holds every secret there is", _NEVER),
    "BWN102": Rule("error", "a system directory", "it configures or starts this machine", _LIFT),
    "BWN103": Rule("error", "the kernel's files", "they reach every process and device", _NEVER),
    "BWN104": Rule(
        "error", "the runtime directory", "read-only does not stop a connect() to a socket", _LIFT
    ),
    "BWN105": Rule(
        "error",
        "a home directory",
        "it holds keys, logins, and files that every shell runs",
        'work in a directory below it, as in workdir = "~/src/shop"; if it must be, '
        '[[profile.NAME.override]] path = "{refused}" with a reason',
    ),
    "BWN106": Rule("error", "keys and tokens", "reading them is having them", _LIFT),
    "BWN107": Rule("error", "a browser profile", "cookies are logins", _LIFT),
    "BWN108": Rule("error", "a key ring", "reading it is having what it keeps", _LIFT),
    "BWN109": Rule("error", "a container engine", "whoever reaches the engine is root on this host", _NEVER),
    "BWN110": Rule("error", "bawn's own files", "an agent that writes them decides what is allowed", _NEVER),
    "BWN111": Rule("error", "an agent's own files", "they hold its logins and history", _LIFT),
    "BWN112": Rule("error", "another user's home", "its owner has not agreed to it", _LIFT),
    "BWN120": Rule(
        "warning", "an override without effect", "it lifts nothing that is mounted", "take it out"
    ),
    "BWN121": Rule("error", "an override that is not possible", "nothing lifts this path", "take it out"),
    "BWN122": Rule("note", "an override in force", "it stands in the record", "none"),
    # Sources and targets
    "BWN201": Rule(
        "error",
        "not a path",
        "a relative path is a volume's name to docker, an unset variable is nothing",
        "write the path out, from / or ~",
    ),
    "BWN202": Rule(
        "error",
        "a missing source",
        "an engine would make an empty directory there, owned by root",
        "mkdir -p {path}, or take the mount out",
    ),
    "BWN203": Rule("error", "a path that cannot be followed", "what it names is not known", "{do}"),
    "BWN204": Rule(
        "error",
        "neither file nor directory",
        "a socket or device is a door to whoever is behind it",
        "mount files and directories only",
    ),
    "BWN205": Rule("note", "a source behind a link", "the box sees the place itself, not the link", "none"),
    "BWN206": Rule(
        "error",
        "a link that an agent can write decides",
        "the agent of an earlier run chose what is mounted now",
        'write the place itself: "{path}", if you mean it',
    ),
    "BWN207": Rule(
        "error",
        "a name that cannot be written down",
        "a bundle is JSON: a name that is not UTF-8 has no place in it",
        "rename it",
    ),
    "BWN208": Rule(
        "error",
        "a tree that was not looked into",
        "a socket or masked file in it would not be known",
        "mount a smaller directory",
    ),
    "BWN210": Rule(
        "error",
        "one place with two modes",
        "which of them held would depend on the engine",
        "keep one of {places}",
    ),
    "BWN211": Rule("warning", "one place twice", "the second adds nothing", "keep one of {places}"),
    "BWN212": Rule(
        "error",
        "one directory under two paths",
        "what one mount denies the other one gives",
        "mount it once, or give both the same mode and masks",
    ),
    "BWN220": Rule(
        "error",
        "a single writable file",
        "programs save by renaming over the file, and a mount point cannot be renamed over (EBUSY)",
        "mount its directory: {folder}",
    ),
    "BWN221": Rule(
        "warning",
        "a single file",
        "the mount keeps the file it had at the start: a save on the host is not seen",
        "mount its directory where later edits matter: {folder}",
    ),
    "BWN230": Rule(
        "error",
        "a missing write root",
        "a mount needs its mount point, and bawn makes nothing on the host unasked",
        "mkdir -p {path}, or create = true in the mount",
    ),
    "BWN231": Rule(
        "error",
        "a write root outside its source",
        "a link or `..` would turn one writable corner into another place",
        "name a directory below {source}, without `..`",
    ),
    "BWN232": Rule("note", "a write root of a writable mount", "it is writable already", "take it out"),
    "BWN233": Rule("note", "a directory to be made", "create = true: owned by the invoker", "none"),
    "BWN240": Rule(
        "error",
        "a socket",
        "a read-only mount does not stop connect(): the box would talk to what listens there",
        'mask = ["{name}"] (keep the others of the list), or move it out of {source}',
    ),
    "BWN241": Rule("note", "a named pipe", "what is written to it leaves the box", "none"),
    "BWN242": Rule("warning", "a device file", "it is not a file of this tree", "remove it"),
    "BWN250": Rule(
        "note",
        "a mount inside the source",
        "it is mounted by itself, so that its mode holds",
        "none",
    ),
    "BWN251": Rule(
        "error",
        "a mount inside the source that is no ordinary file system",
        "its files are not what they seem, and read-only may not hold on it",
        'unmount it, mask = ["{name}"], or mount the directories beside it',
    ),
    "BWN260": Rule(
        "error",
        "a place the box needs for itself",
        "the mount and the box's own directory would hide each other",
        "move the directory, or mount a directory below it",
    ),
    "BWN261": Rule("error", "a writable system directory", "the host runs what it holds", 'mode = "ro"'),
    "BWN262": Rule("note", "already visible", "image = host shows it read-only anyway", "take it out"),
    "BWN270": Rule(
        "error",
        "a docker daemon elsewhere",
        "paths are those of the daemon's machine, not of this one",
        'engine = "gvisor", or unset DOCKER_HOST',
    ),
    "BWN280": Rule(
        "error",
        "a directory that the box could open and bawn cannot",
        "a socket or masked file in it would not be covered",
        'chmod u+rx {path}, or mask = ["{name}"]',
    ),
    "BWN281": Rule(
        "warning",
        "a directory that cannot be read",
        "a socket or masked file in it would not be covered, if the box ever reached it",
        'mask = ["{name}"], or let the invoking user read it',
    ),
    "BWN282": Rule(
        "error",
        "a path longer than the kernel allows",
        "what lies below cannot be covered",
        "rm -rf the top of it, if you do not know it",
    ),
    # Masks
    "BWN301": Rule("error", "not a pattern", "a mask that matches nothing hides nothing", "mend it"),
    "BWN302": Rule(
        "error",
        "a masked name that cannot be written down",
        "a bundle is JSON: a name that is not UTF-8 cannot be covered",
        "rename or move it",
    ),
    "BWN303": Rule("note", "a masked link to nothing", "there is nothing to hide", "none"),
    "BWN304": Rule("note", "a masked link out of the mounts", "the box cannot follow it", "none"),
    "BWN305": Rule(
        "warning",
        "a masked link to a mount",
        "hiding what it leads to would hide the mount itself",
        "remove the link",
    ),
    "BWN306": Rule(
        "error",
        "a mount inside a masked directory",
        "one of the two would have to give way",
        "take out the mount, or the pattern {pattern!r}",
    ),
    "BWN307": Rule(
        "warning",
        "a masked file with other names",
        "a hard link to it may be readable elsewhere in the tree",
        "find {source} -samefile {path}",
    ),
    "BWN308": Rule(
        "error",
        "too many mounts",
        "each is a mount point of the box: it would take minutes to start",
        "mask the directories that hold them",
    ),
    "BWN309": Rule("note", "masks are off", "mask = [] was written out", "none"),
    "BWN310": Rule(
        "error",
        "a source that its own mask hides",
        "one of the two was not meant",
        "mask = [] on this mount, if the file is to be seen",
    ),
    "BWN311": Rule(
        "warning",
        "a masked link that the agent can remove",
        "what it leads to is masked by this link alone: without it the next run shows it",
        'mask = ["{name}"] too (keep the others of the list)',
    ),
    # Files the host runs or obeys
    "BWN401": Rule(
        "warning",
        "a protected link",
        "a mount covers what a link leads to: the link itself can be replaced by the agent",
        "put the file itself there; the scan after the run reports a change",
    ),
    "BWN402": Rule("note", "left writable", "host_exec allows it", "none"),
    "BWN403": Rule(
        "warning",
        "a policy that was to be writable",
        "an agent that writes the policy decides what is allowed: it stays read-only",
        "take the pattern out of host_exec",
    ),
    "BWN404": Rule(
        "error",
        "a file the host runs, with a name that cannot be written down",
        "a bundle is JSON: a name that is not UTF-8 cannot be protected",
        "rename or move it",
    ),
    "BWN405": Rule(
        "error",
        "a writable mount of what the host runs",
        "the agent's text would run on the host",
        'mode = "ro", or host_exec = ["{name}"] if you mean it',
    ),
    # Ownership
    "BWN501": Rule(
        "error",
        "a directory on the way bars the box",
        "the box's user cannot come as far as the source",
        "chmod o+x {path}, or move the source",
    ),
    "BWN502": Rule("error", "a source the box cannot read", "its user is not let in", "chmod o+rX {path}"),
    "BWN503": Rule(
        "error",
        "a writable mount the box cannot write",
        "its user is not let in",
        'chown {uid}:{gid} {path}, or mode = "ro"',
    ),
    "BWN504": Rule(
        "warning",
        "a work directory the box cannot write",
        "its user is not let in",
        'chown {uid}:{gid} {path}, or workdir_mode = "ro"',
    ),
    "BWN505": Rule(
        "error",
        "a target that the image bars",
        "/root of an image is closed to its users",
        "move the source out of /root, or image = host",
    ),
    "BWN506": Rule(
        "warning",
        "only a group lets the box in",
        "in the box the command has no supplementary group: bits and lists for others do not count",
        "chmod o+rx {path}, or chown it to {uid}:{gid}",
    ),
    # Git directories
    "BWN601": Rule(
        "warning",
        "a git directory outside the mounts",
        "every git command in the box fails: this is a worktree or submodule",
        "git_links = true in the profile mounts {path} too (hooks and config read-only)",
    ),
    "BWN602": Rule(
        "warning",
        "a git pointer without an answer",
        "the git directory does not name this worktree in return, so it is not mounted",
        "git worktree repair, if it is yours",
    ),
    "BWN603": Rule("note", "a git pointer to nothing", "git will not work here", "none"),
    "BWN604": Rule("note", "a git directory mounted too", "git_links = true", "none"),
    **RUN_RULES,
}


def finding(rule: str, place: str, message: str, **values: object) -> Finding:
    """A finding by its rule. `values` fill the fix: paths for a command line are `shell` quoted.

    Names in a tree may be bytes that are no text: they are written as `\\udc80`, so that a plan
    has a canonical form whatever an agent calls its files.
    """
    row = RULES[rule]
    fix = "" if row.fix == "none" else row.fix.format(**values)
    return Finding(rule, row.severity, _text(place), _text(message), _text(fix))


def writable_text(path: str) -> bool:
    """`path` can be written in a bundle (it is UTF-8)."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(text: str) -> str:
    return text if writable_text(text) else text.encode("utf-8", "backslashreplace").decode()


def shell(path: str) -> str:
    """`path` for a command line that a person pastes."""
    safe = path.isascii() and all(char.isalnum() or char in "/._-+@%,:" for char in path)
    return path if safe and path else "'" + path.replace("'", "'\\''") + "'"
