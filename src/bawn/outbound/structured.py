"""What a gateway is about to send, as data: a task's summary and artifacts, a list of uploads. Pure.

Lists of files are taken item by item, exactly. Every other string, however deep and under whatever
key, is read as text: a carrier that this table does not know is searched, never passed over.
"""

from collections.abc import Iterator

from bawn.outbound.extract import MAX_CANDIDATES, extract, given
from bawn.outbound.model import Candidate
from bawn.typed import Any

MAX_DEPTH = 32
# Keys whose value is a file, or a list of them, wherever they stand (`metadata.artifacts` too).
FILES = frozenset(
    ("artifact", "artifacts", "attachment", "attachments", "file", "files", "media", "media_files",
     "media_urls", "path", "paths", "upload", "uploads")
)  # fmt: skip


class Unreadable(ValueError):
    """Data that this cannot search whole."""


def candidates(data: Any) -> list[Candidate]:
    """Every path that `data` carries; a plain string is a reply. At most MAX_CANDIDATES + 1.

    Raises Unreadable.
    """
    found: dict[tuple[tuple[str, ...], str], Candidate] = {}
    for one in _walk(data, "", isinstance(data, list), 0):
        known = found.get((one.readings, one.problem))
        if known is None or (one.claimed and not known.claimed):
            found[(one.readings, one.problem)] = one
        if len(found) > MAX_CANDIDATES:
            break
    return list(found.values())


def _walk(data: Any, where: str, files: bool, depth: int) -> Iterator[Candidate]:
    if depth > MAX_DEPTH:
        raise Unreadable(f"nested deeper than {MAX_DEPTH}")
    if isinstance(data, str):
        yield from _string(data, where or "text", files)
    elif isinstance(data, dict):
        for key, value in data.items():
            at = f"{where}.{key}" if where else str(key)
            yield from _walk(value, at, str(key).lower() in FILES, depth + 1)
    elif isinstance(data, list):
        for number, value in enumerate(data):
            at = f"{where or 'files'}[{number}]"
            if files and isinstance(value, str):
                yield given(value, at)
            else:
                yield from _walk(value, at, files, depth + 1)
    elif files and data is not None and not isinstance(data, bool):
        yield Candidate(str(data), (str(data),), "given", True, "BWN923", where)


def _string(text: str, where: str, files: bool) -> Iterator[Candidate]:
    """A string where a list of files may stand: one path, or text with several."""
    if not files:
        yield from extract(text, where)
        return
    for line in text.splitlines():
        line = line.strip()
        several = extract(line, where)
        if line and len(several) < 2 and not (several and several[0].form in ("tag", "link")):
            yield given(line, where)
        else:
            yield from several
