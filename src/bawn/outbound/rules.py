"""Every outcome for a file of a reply: what it is called and what to do about it. BWN9xx.

`docs/outbound.md` shows this table (a test holds it to it). 90x and 91x say where the file may not
come from, 92x what is no path, 93x what is no ordinary file, 94x what is wrong with its content.
"""

from bawn.typed import NamedTuple


class Rule(NamedTuple):
    what: str
    fix: str


_WRITE_OUT = "write the path out, from / or ~/"
_COPY = "copy the file into a root, by `cp`, and name the copy"
_NONE = "none: it is not sent"

RULES: dict[str, Rule] = {
    "BWN900": Rule("allowed", "none needed"),
    "BWN901": Rule("outside the roots", "put a copy into a root, or add its directory to outbound.roots"),
    "BWN902": Rule("the policy has no outbound roots: nothing leaves", "set outbound.roots"),
    "BWN903": Rule(
        "the root is no longer the directory that it was when the policy was loaded",
        "look at who moved it; then start the guard again",
    ),
    "BWN910": Rule("denied by a pattern of outbound.deny", "rename the file, or change outbound.deny"),
    "BWN911": Rule("masked in a profile, so hidden from the agent", _NONE),
    "BWN912": Rule("a place that no box is given: keys, logins, bawn's own files", _NONE),
    "BWN920": Rule("a relative path: it has no fixed base", _WRITE_OUT),
    "BWN921": Rule("a variable, another user's ~ or a Windows path: nothing is expanded", _WRITE_OUT),
    "BWN922": Rule("a file: URL of another host, or a broken one", "write file:///path"),
    "BWN923": Rule("not the text of a path: control characters, or too long", "rename the file"),
    "BWN930": Rule("no such file", "make it first, then name it"),
    "BWN931": Rule("a symbolic link leads out of the roots", _COPY),
    "BWN932": Rule("not a regular file", "name a file; pack a directory into one"),
    "BWN933": Rule("the file has other hard links, perhaps outside the roots", _COPY),
    "BWN934": Rule("larger than outbound.max_size", "send less, or raise outbound.max_size"),
    "BWN935": Rule("on another file system than its root", "add the mount point to outbound.roots"),
    "BWN936": Rule("it cannot be opened", "look at its owner and mode"),
    "BWN937": Rule("it was changed while it was being read", "send it again when it is finished"),
    "BWN938": Rule("more files than one reply may have", "send several replies"),
    "BWN939": Rule("this kernel cannot open beneath a directory (openat2)", "Linux 5.6 or newer"),
    "BWN940": Rule("the content looks like a secret", "take the secret out"),
    "BWN941": Rule(
        "the content could not be searched for secrets",
        "install detect-secrets; send text of at most 8 MiB a file",
    ),
}

# Nothing is there to be sent: a mere mention of such a path is no claim that a file comes along.
NOTHING_THERE = frozenset(("BWN930", "BWN932"))
