"""Mask patterns: the grammar of `.gitignore` without negation, compiled for many patterns. Pure.

    no slash        the name, at any depth             .env   *.pem
    with a slash    relative to the source             config/key.json   /key.json
    *  ?  [a-z]     within one name (a leading dot is nothing special)
    **              any number of directories          **/certs/*.key   build/**

`Matcher(patterns).match(name, relpath)` costs the same however many patterns there are: literal
names, `prefix*` and `*suffix` are found in dictionaries, and what a slash adds is settled once for
each directory (`Matcher.enter`). Only what is left over becomes a regular expression, in which
every star but the last is atomic, so that no name makes it slower than length times length.

Names are compared in Unicode's NFC, and in a tree that ignores case (`casefold`) also folded:
`.GIT` and `.Env` are then the same files as `.git` and `.env`.
"""

import re
from collections.abc import Iterable

from bawn.typed import NamedTuple

_STAR = "*"
_MAGIC = re.compile(r"[*?\[\\]")
_CLASS = re.compile(r"\[([!^]?)(\]?(?:\\.|[^\]])*)\]")


def normal(name: str, casefold: bool) -> str:
    """The form in which names are compared."""
    if name.isascii():
        return name.lower() if casefold else name
    from unicodedata import normalize

    if casefold:  # Unicode 3.13 D145, canonical caseless matching
        name = normalize("NFD", normalize("NFD", name).casefold())
    return normalize("NFC", name)


def problem(pattern: str) -> str:
    """Why `pattern` is not a mask pattern, or ""."""
    if all(part in ("", ".") for part in pattern.split("/")):
        return "it names nothing"
    if pattern.startswith("!"):
        return "patterns cannot be taken back with `!`; leave the pattern out instead"
    if "\0" in pattern:
        return "it holds a NUL byte"
    parts = _parts(pattern)
    if ".." in parts:
        return "`..` leads out of the source"
    if "[" not in pattern and "\\" not in pattern:
        return ""
    for part in parts:
        if part.endswith("\\") and not part.endswith("\\\\"):
            return "a backslash at the end of a name escapes nothing"
        try:
            _tokens(part)
        except ValueError as error:
            return str(error)
    return ""


def _parts(pattern: str) -> list[str]:
    """The pattern's names from the source down. A pattern without a slash begins with `**`."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if "/" not in pattern.rstrip("/"):
        parts.insert(0, "**")
    kept: list[str] = []
    for part in parts:
        if part != "**" or not kept or kept[-1] != "**":
            kept.append(part)
    return kept


def residues(pattern: str, folder: str) -> list[str]:
    """What `pattern` says of names below `folder` (relative to its source), as patterns there.

    With "" for `folder`: the pattern itself in forms that fnmatch(3) takes in the same way or more
    widely, since `launch.c` has nothing better: `a/**/b` also as `a/b`, `**/b` as `b`.
    """
    several = [_parts(pattern)]
    for step in folder.split("/") if folder else ():
        after: list[list[str]] = []
        for parts in several:
            if parts[0] == "**":
                after.append(parts)
                parts = parts[1:]
            if len(parts) > 1 and Matcher([parts[0]]).match(step, step):
                after.append(parts[1:])
        several = after
    found: list[str] = []
    for parts in several:
        found += _forms(parts)
    return list(dict.fromkeys(found))


def _forms(parts: list[str]) -> list[str]:
    if parts == ["**"]:
        return ["*"]
    if len(parts) == 2 and parts[0] == "**":
        return [parts[1]]
    whole = [parts]
    for at, part in enumerate(parts[:-1]):
        if part == "**":  # or no directory at all
            whole.append(parts[:at] + parts[at + 1 :])
    return ["/".join(form) if len(form) > 1 else f"/{form[0]}" for form in whole]


class _Token(NamedTuple):
    literal: str  # "" for a star or a character class
    regex: str


def _tokens(part: str) -> list[_Token]:
    """One name of a pattern, cut into literal characters, stars and classes.

    Raises ValueError, with the reason, for a class that is open or runs backwards.
    """
    tokens: list[_Token] = []
    at = 0
    while at < len(part):
        char = part[at]
        if char == "*":
            if not tokens or tokens[-1].regex != _STAR:
                tokens.append(_Token("", _STAR))
        elif char == "?":
            tokens.append(_Token("", "."))
        elif char == "[":
            found = _CLASS.match(part, at)
            if not found or not found[2]:
                raise ValueError("`[` without `]`; write `\\[` for the character itself")
            body = re.sub(r"([\[&~|^])", r"\\\1", found[2].removeprefix("]"))
            body = ("\\]" if found[2].startswith("]") else "") + body
            regex = f"[{'^' if found[1] else ''}{body}]"
            try:
                re.compile(regex)
            except re.error:
                raise ValueError(f"`{found[0]}` is not a set of characters") from None
            tokens.append(_Token("", regex))
            at = found.end() - 1
        else:
            at += char == "\\" and at + 1 < len(part)
            tokens.append(_Token(part[at], re.escape(part[at])))
        at += 1
    return tokens


def _regex(tokens: list[_Token]) -> str:
    """The tokens as a regular expression to be used with `fullmatch`.

    Between two stars the text is of fixed width, so the earliest place where it fits is as good
    as any later one: the search for it need never be taken back (an atomic group).
    """
    pieces = [""]
    for token in tokens:
        if token.regex == _STAR:
            pieces.append("")
        else:
            pieces[-1] += token.regex
    if len(pieces) == 1:
        return pieces[0]
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1])
    return f"{pieces[0]}{middle}.*{pieces[-1]}"


# Suffix length -> suffix -> pattern; and the same below prefix length -> prefix.
_Suffixes = dict[int, dict[str, str]]


class Names:
    """Patterns for single names: one lookup, whatever their number."""

    __slots__ = ("any", "heads", "literal", "prefixes", "rest", "rest_of", "suffixes", "tails")

    def __init__(self, patterns: Iterable[tuple[str, str]], casefold: bool) -> None:
        """`patterns` are pairs of (one name's pattern, the whole pattern it stands for)."""
        self.any = ""
        self.literal: dict[str, str] = {}
        self.prefixes: dict[int, dict[str, _Suffixes]] = {}
        self.suffixes: _Suffixes = {}
        rest: dict[str, str] = {}
        for part, pattern in patterns:
            part = normal(part, casefold)
            if not _MAGIC.search(part):
                self.literal.setdefault(part, pattern)
                continue
            tokens = _tokens(part)
            stars = [at for at, token in enumerate(tokens) if token.regex == _STAR]
            if len(stars) > 1 or sum(not token.literal for token in tokens) > len(stars):
                rest.setdefault(_regex(tokens), pattern)
                continue
            text = "".join(token.literal for token in tokens)
            if not stars:
                self.literal.setdefault(text, pattern)
            elif not text:
                self.any = self.any or pattern
            else:
                head, tail = text[: stars[0]], text[stars[0] :]
                suffixes = self.suffixes
                if head:
                    suffixes = self.prefixes.setdefault(len(head), {}).setdefault(head, {})
                suffixes.setdefault(len(tail), {}).setdefault(tail, pattern)
        self.heads = frozenset(head[0] for heads in self.prefixes.values() for head in heads)
        self.tails = frozenset(tail[-1] for tails in self.suffixes.values() for tail in tails)
        self.rest_of = list(rest.values())
        joined = "|".join(f"({regex})" for regex in rest)
        self.rest = re.compile(joined, re.DOTALL) if rest else None

    def match(self, name: str) -> str | None:
        """The pattern that hides `name` (already `normal`), or None."""
        found = self.literal.get(name)
        if found is not None:
            return found
        if name[:1] in self.heads:
            for width, heads in self.prefixes.items():
                suffixes = heads.get(name[:width])
                if suffixes and len(name) >= width:
                    found = _by_suffix(suffixes, name[width:])
                    if found is not None:
                        return found
        if name[-1:] in self.tails:
            found = _by_suffix(self.suffixes, name)
            if found is not None:
                return found
        if self.rest:
            match = self.rest.fullmatch(name)
            if match and match.lastindex:
                return self.rest_of[match.lastindex - 1]
        return self.any or None


def _by_suffix(suffixes: _Suffixes, rest: str) -> str | None:
    for width, tails in suffixes.items():
        if width <= len(rest):
            found = tails.get(rest[len(rest) - width :])
            if found is not None:
                return found
    return None


class _Deep(NamedTuple):
    """A pattern whose directory part has a wildcard."""

    above: tuple[re.Pattern[str] | None, ...]  # None: `**`
    part: str
    pattern: str


class Matcher:
    """Many patterns as one. Patterns must have no `problem`."""

    def __init__(self, patterns: Iterable[str], casefold: bool = False) -> None:
        self.casefold = casefold
        self.patterns = tuple(patterns)
        anywhere: list[tuple[str, str]] = []
        # What a directory adds, by its path; by the path of a directory above it; by its name.
        self._at: dict[str, list[tuple[str, str]]] = {}
        self._below: dict[str, list[tuple[str, str]]] = {}
        self._named: dict[str, list[_Deep]] = {}
        self._deep: list[_Deep] = []
        for pattern in self.patterns:
            *above, part = _parts(normal(pattern, casefold))
            if part == "**":
                above, part = [*above, part], "*"
            if above == ["**"]:
                anywhere.append((part, pattern))
                continue
            steps = [None if step == "**" else _tokens(step) for step in above]
            literal = [
                "".join(token.literal for token in step)
                if step is not None and all(token.literal for token in step)
                else ""
                for step in steps
            ]
            if all(literal):
                self._at.setdefault("/".join(literal), []).append((part, pattern))
            elif above[-1] == "**" and all(literal[:-1]):
                self._below.setdefault("/".join(literal[:-1]), []).append((part, pattern))
            else:
                deep = _Deep(
                    tuple(None if step is None else re.compile(_regex(step), re.DOTALL) for step in steps),
                    part,
                    pattern,
                )
                where = self._named.setdefault(literal[-1], []) if literal[-1] else self._deep
                where.append(deep)
        self.names = Names(anywhere, casefold)
        self._slashes = bool(self._at or self._below or self._named or self._deep)
        self._last: tuple[str, Names | None] = ("\0", None)

    def enter(self, folder: str) -> Names | None:
        """What the patterns with a slash say of the names in `folder` (relative, "" the source).

        None where they say nothing. `names` holds besides, everywhere.
        """
        if not self._slashes:
            return None
        folder = normal(folder, self.casefold)
        found = list(self._at.get(folder, ()))
        above = folder
        while self._below:
            found += self._below.get(above, ())
            if not above:
                break
            above = above.rpartition("/")[0]
        if self._named or self._deep:
            steps = folder.split("/") if folder else []
            deep = [*(self._named.get(steps[-1], ()) if steps else ()), *self._deep]
            found += [(d.part, d.pattern) for d in deep if _fits(d.above, steps)]
        return Names(found, self.casefold) if found else None

    def match(self, name: str, relpath: str) -> str | None:
        """The pattern that hides the entry `name` at `relpath` (from the source), or None.

        What lies below a hidden directory is not asked for: the directory is covered whole.
        """
        name = normal(name, self.casefold)
        found = self.names.match(name)
        if found is None and self._slashes:
            folder = relpath.rpartition("/")[0]
            if self._last[0] != folder:
                self._last = (folder, self.enter(folder))
            extra = self._last[1]
            found = extra.match(name) if extra else None
        return found


def _fits(pattern: tuple[re.Pattern[str] | None, ...], steps: list[str]) -> bool:
    """The directory part of a pattern covers `steps`; `**` is taken back at most to the last one.

    The usual greedy walk over wildcards, with whole names for characters: steps times parts.
    """
    at = part = 0
    star, resume = -1, 0
    while at < len(steps):
        if part < len(pattern) and pattern[part] is None:
            star, resume = part, at
            part += 1
            continue
        regex = pattern[part] if part < len(pattern) else None
        if regex is not None and regex.fullmatch(steps[at]):
            at += 1
            part += 1
        elif star >= 0:
            resume += 1
            at, part = resume, star + 1
        else:
            return False
    return all(step is None for step in pattern[part:])
