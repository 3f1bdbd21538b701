"""Text -> every path that a messaging gateway could find in it. Pure, in linear time.

Gateways differ (one takes a path with spaces only behind `MEDIA:`, another strips back-ticks, a third
decodes URLs), so this finds what any of them would. Where a path ends cannot always be told from
the text: a candidate has several readings, and the file that exists decides. A wrong reading does no
harm: each is judged like any other path, and what is handed over is what was judged.

No regular expression here can be made to search twice: the repeats are of one class, bounded, or
followed by what the class excludes. What bounds the whole: PATH_MAX, and MAX_CANDIDATES.
"""

import re
from urllib.parse import unquote_to_bytes

from bawn.outbound.model import Candidate, Form
from bawn.typed import NamedTuple

MAX_CANDIDATES = 20_000  # of one reply
_MAX_ANCHORS = 25_000  # places looked at; a repeated path costs as much as a new one
PATH_MAX = 4096  # bytes: linux/limits.h
_GUESSED = 512  # characters of a reading whose end is a guess; memory is so many times MAX_CANDIDATES
_TAG_WORDS, _BARE_WORDS = 12, 3  # words that a path with spaces may have beyond the first

# Every alternative begins with one literal character, which lets `re` skip to it. What stands before
# a path is anything but what would make it the rest of a longer word, relative path or URL.
_ANCHOR = re.compile(
    r"(?P<tag>M(?i:EDIA:)|m(?i:EDIA:))"
    r"|(?P<url>f(?i:ile:)|F(?i:ile:))(?=/)"
    r"|(?P<link>\]\()"
    r"|(?P<bare>/(?<![A-Za-z0-9./\\~}:]/)|/(?<=[A-Za-z0-9_]:/)(?<!(?<![A-Za-z0-9])[A-Za-z]:/)(?!/))"
    r"|(?P<home>~(?<![A-Za-z0-9./\\~]~)/)"
    r"|(?P<other>~(?<![A-Za-z0-9./\\~]~)[A-Za-z_][A-Za-z0-9_.-]{0,31}/"
    r"|\$(?:[A-Za-z_][A-Za-z0-9_]{0,31}|\{[A-Za-z_][A-Za-z0-9_]{0,31}\})/)"
    r"|(?P<drive>:(?<=[A-Za-z]:)(?<![A-Za-z0-9][A-Za-z]:)[\\/])"
)
# A path as most are written: white space before and after, nothing in it that could end it sooner.
_PLAIN = re.compile(r"[A-Za-z0-9_./+@%~-]{1,4095}+(?=\s|\Z)")
_WORD = re.compile(r"\S{1,4200}")
_HARD = re.compile(r"[\"'`<>|\0-\x1f\x7f]")
_SOFT = re.compile(
    "[\"'`<>|,;:)\\]}*\0-\x1f\x7f，。、；：！？…（）「」『』【】《》〈〉“”‘’〔〕［］｛｝｡､«»·]"
)
_SOFT_URL = re.compile(_SOFT.pattern.replace(":", "", 1))
_THEN_FOREIGN = re.compile(r"\.[A-Za-z0-9]{1,10}(?=[^\x00-\x7f])")
_NEXT_WORD = re.compile(r"[^\S\n]{1,8}(?!/|~/|(?i:MEDIA:|file:/))\S{1,300}")
_SPACE = re.compile(r"\s{0,64}")
_WEB = re.compile(r"(?i:(?!file:)[a-z][a-z0-9+.-]{1,20}:(?![\\/]?[^\\/])|mailto:|data:|tel:|#|\?|$)")
_POINTS = "\"'`,.;:!?*_~|…，。、；：！？”’｡､·»"
_CLOSERS = ")]}>）」』】》〉〔〕］｝"
_TRAIL = _POINTS + _CLOSERS
_PAIRS = dict(zip("\"'`(<[{*_|“‘「『《〈【（«", "\"'`)>]}*_|”’」』》〉】）»", strict=True))


class _Cut(NamedTuple):
    readings: tuple[str, ...]
    end: int  # where the search goes on: behind the shortest reading
    shown: str  # the reading that a person would take
    claimed: bool  # it ends like a file's name


def extract(text: str, where: str = "text") -> list[Candidate]:
    """The candidates in the order of the text, each path once. At most MAX_CANDIDATES + 1."""
    return _Scan(text, where).run()


def given(text: str, where: str) -> Candidate:
    """An item of a list of files: the whole text is the path, or a file: URL."""
    if text[:5].lower() == "file:":
        return _url(text, (text,), "given", where)
    return Candidate(text, (text,), "given", True, "", where)


class _Scan:
    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where
        self.found: dict[tuple[str, ...], Candidate] = {}
        self.word_end = 0  # of the run without white space that is being read
        self.none_until: dict[str, int] = {}  # closing quote -> there is none before this place
        self.fences = _fences(text)

    def run(self) -> list[Candidate]:
        text, at = self.text, 0
        for _ in range(_MAX_ANCHORS):
            match = _ANCHOR.search(text, at)
            if not match or len(self.found) > MAX_CANDIDATES:
                return list(self.found.values())
            kind, start = match.lastgroup or "", match.start()
            end = self._plain(start) if kind == "bare" or kind == "home" else 0
            at = end or self._take(kind, start, match.end())
        rest = Candidate(text[at : at + 80], (), "bare", True, "BWN938", self.where)
        return [*self.found.values(), rest]

    def _plain(self, start: int) -> int:
        """Takes a path that stands by itself, which is most of them; where it ends, else 0."""
        text = self.text
        match = _PLAIN.match(text, start)
        if not match or (start and text[start - 1] not in " \n") or not _has_extension(match[0]):
            return 0
        readings = (match[0],)
        if readings not in self.found:
            form: Form = "code" if self.fences and _inside(self.fences, start) else "bare"
            self.found[readings] = Candidate(match[0], readings, form, True, "", self.where)
        return match.end()

    def _take(self, kind: str, start: int, end: int) -> int:
        """Reads the path at an anchor; where to go on."""
        text = self.text
        form: Form = "bare"
        if kind == "bare" or kind == "home":
            cut = self._cut(start, _BARE_WORDS)
        elif kind == "tag":
            match = _SPACE.match(text, end)
            start = match.end() if match else end
            form = "tag"
            if _WEB.match(text, start):
                return start
            cut = self._cut(start, _TAG_WORDS)
            if not _path_like(cut.readings):
                return end
        elif kind == "link":
            form = "link"
            start = end + (text[end : end + 1] == "<")
            if _WEB.match(text, start) or not _path_like((text[start : start + 300],)):
                return end
            cut = self._cut(start, _BARE_WORDS)
        elif kind == "url":
            form = "url"
            cut = self._cut(start, 0)
        else:
            start -= kind == "drive"
            cut = self._cut(start, 0)
        if not cut.readings:
            return end
        self._add(kind, form, cut, start)
        return max(cut.end, end)

    def _add(self, kind: str, form: Form, cut: _Cut, start: int) -> None:
        if kind == "url" or cut.readings[0][:5].lower() == "file:":
            one = _url(cut.shown, cut.readings, form, self.where)
        else:
            problem = "BWN921" if kind in ("drive", "other") else ""
            claimed = form != "bare" or bool(problem) or cut.claimed
            if form == "bare" and start and self.text[start - 1] in _PAIRS:
                form = "code" if self.text[start - 1] == "`" else "quoted"
            if form in ("bare", "quoted") and self.fences and _inside(self.fences, start):
                form = "code"
            one = Candidate(cut.shown, cut.readings, form, claimed, problem, self.where)
        self.found.setdefault(one.readings, one)

    def _cut(self, start: int, words: int) -> _Cut:
        """What a path at `start` may be: between the quotes around it, then the longest first."""
        text = self.text
        found: dict[str, None] = {}
        opener = text[start - 1 : start]
        if text[start : start + 1] in _PAIRS and text[start : start + 1] in "\"'`<":
            opener = text[start]
            start += 1
        inner = self._quoted(start, opener) if opener in _PAIRS else ""
        if inner:
            found[inner.strip()] = None
        if start >= self.word_end:
            match = _WORD.match(text, start)
            if not match:
                return _Cut(tuple(found), start + len(inner), inner, True)
            self.word_end = match.end()
        word = text[start : min(self.word_end, start + PATH_MAX + 1)]
        soft = (_SOFT_URL if word[:5].lower() == "file:" else _SOFT).search(word)
        short = word
        if soft or word[-1] in _TRAIL or not word.isascii():
            hard = _HARD.search(word)
            short = (word[: soft.start()] if soft else word).rstrip(_TRAIL)
            foreign = None if short.isascii() else _THEN_FOREIGN.search(short)
            several = [word, word.rstrip(_POINTS), word.rstrip(_TRAIL)]
            if hard:
                several.append(word[: hard.start()].rstrip(_TRAIL))
            several.append(short)
            if foreign:
                short = short[: foreign.end()]
                several.append(short)
            found |= {one: None for one in several if len(one) <= _GUESSED or one == short}
        else:
            found[word] = None
        claimed = any(map(_has_extension, found))
        if words and (words == _TAG_WORDS or not _has_extension(short)):
            count = len(found)
            self._spaced(start, words, found)
            claimed = claimed or (len(found) > count and "/" in short.strip("/~"))
        readings = tuple(one for one in found if one.strip("/~."))
        return _Cut(readings, start + len(short), inner or short or word, claimed)

    def _quoted(self, start: int, opener: str) -> str:
        """From `start` to the closing quote on the same line, "" where there is none."""
        closer = _PAIRS[opener]
        limit = min(len(self.text), start + _GUESSED)
        begin = max(start, self.none_until.get(closer, 0))
        at = self.text.find(closer, begin, limit)
        if at < 0:
            self.none_until[closer] = max(limit - 1, begin)
            return ""
        inner = self.text[start:at]
        return "" if "\n" in inner else inner.rstrip("\\")

    def _spaced(self, start: int, words: int, found: dict[str, None]) -> None:
        """The path goes on over spaces, as far as a word with an extension on the same line."""
        at = self.word_end
        for _ in range(words):
            match = _NEXT_WORD.match(self.text, at)
            if not match or match.end() - start > _GUESSED:
                return
            at = match.end()
            several = {self.text[start:at].rstrip(_TRAIL): None}
            soft = _SOFT.search(self.text, match.start(), at)
            if soft:
                several[self.text[start : soft.start()].rstrip(_TRAIL)] = None
            found |= {one: None for one in several if _has_extension(one)}


def _has_extension(text: str) -> bool:
    """It ends like the name of a file: a dot, and one to ten letters or digits."""
    end = text[text.rfind(".") + 1 :]
    return 0 < len(end) <= 10 and len(end) < len(text) and end.isascii() and end.isalnum()


def _path_like(readings: tuple[str, ...]) -> bool:
    """A tag or a link of this text means a file: it has a directory, or a name with an extension."""
    for one in readings:
        head = one.split(")", 1)[0].strip()
        if "/" in head or "\\" in head or _has_extension(head):
            return True
    return False


def _url(text: str, readings: tuple[str, ...], form: Form, where: str) -> Candidate:
    """A file: URL, decoded exactly once (RFC 8089; the path is RFC 3986's)."""
    decoded: dict[str, None] = {}
    problem = ""
    for one in readings:
        rest = one[5:]
        if rest.startswith("//"):
            host, slash, path = rest[2:].partition("/")
            if host.lower() not in ("", "localhost") or not slash:
                problem = "BWN922"
                continue
            rest = slash + path
        if not rest.startswith("/"):
            problem = "BWN922"
            continue
        for part in (rest, rest.partition("?")[0].partition("#")[0]):
            try:
                decoded[unquote_to_bytes(part).decode()] = None
            except UnicodeDecodeError:
                problem = "BWN922"
    return Candidate(text, tuple(decoded) or (text,), form, True, "" if decoded else problem, where)


def _fences(text: str) -> list[tuple[int, int]]:
    """Fenced code: from one ``` at the beginning of a line to the next, or to the end."""
    found = []
    at = 0 if text.startswith("```") else text.find("\n```")
    while at >= 0:
        end = text.find("\n```", at + 4)
        if end < 0:
            end = len(text)
        found.append((at, end))
        at = text.find("\n```", end + 4)
    return found


def _inside(spans: list[tuple[int, int]], at: int) -> bool:
    from bisect import bisect_right

    number = bisect_right(spans, (at, len(spans) and 1 << 62))
    return number > 0 and at < spans[number - 1][1]
