"""The text of a path in a policy: what it may look like, and its one expansion of `~`. Pure.

A relative source is taken by docker as the name of a volume, and an unset variable as nothing:
both mount something that nobody meant, so both are errors here.
"""

import re

_VARIABLE = re.compile(r"\$(\w|\{)")


def problem(text: str, relative: bool = False) -> str:
    """Why `text` cannot be a path, or "". `relative` allows one that a base is put before."""
    if not text:
        return "an empty path"
    if "\0" in text:
        return "a NUL byte in a path"
    if _VARIABLE.search(text):
        return "a variable in a path: variables are not expanded, write the path out"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "a path that is not UTF-8: it cannot be written in a bundle"
    if text.startswith("~") and not (text == "~" or text.startswith("~/")):
        return "another user's ~: write the path out"
    if not relative and not text.startswith(("/", "~")):
        return "a relative path: write it from / or ~"
    return ""


def expand(text: str, home: str, base: str = "") -> str:
    """`text` made absolute: one leading `~` becomes `home`, a relative path is put below `base`."""
    if text == "~" or text.startswith("~/"):
        return home + text[1:]
    return text if text.startswith("/") else f"{base}/{text}"


def within(path: str, root: str) -> bool:
    """`path` is `root` or lies below it, by whole components (both absolute and normal)."""
    return path == root or path.startswith(root if root == "/" else root + "/")


def ancestors(path: str) -> list[str]:
    """`path` and every directory above it, deepest first, "/" last (absolute and normal)."""
    found = []
    while len(path) > 1:
        found.append(path)
        path = path[: path.rindex("/")]
    found.append("/")
    return found
