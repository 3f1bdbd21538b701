"""A YAML document as nodes with their places in the text. Pure.

ruamel.yaml's own round trip keeps comments, but not every byte (odd indents, quotes, line ends), so
it only reads here: its events say where each key and value lies. Nothing is resolved to a type, so the
tree is the same for a reader of YAML 1.1 (`on`, 0755, 1:30) and of 1.2.
"""

import io

from bawn.errors import HostError
from bawn.typed import Any, NamedTuple

SCALAR, MAPPING, SEQUENCE, ALIAS = "scalar", "mapping", "sequence", "alias"


class Pair(NamedTuple):
    """One entry of a mapping; `colon` is -1 where none follows the key."""

    key: "Node"
    colon: int
    value: "Node"


class Node(NamedTuple):
    """`start` and `end` are offsets in the text; of a block collection only `start` is exact."""

    kind: str
    start: int
    end: int
    column: int
    text: str = ""  # of a scalar, or the name that an alias has
    plain: bool = False
    flow: bool = False
    anchor: str = ""
    tag: str = ""
    pairs: tuple[Pair, ...] = ()
    items: tuple["Node", ...] = ()

    @property
    def null(self) -> bool:
        """Nothing is written there, or null is."""
        return self.kind == SCALAR and self.plain and self.text in ("", "~", "null", "Null", "NULL")

    def meaning(self) -> Any:
        """All that a reader of any version can see of it: places and comments apart."""
        marks = (self.kind, self.anchor, self.tag)
        if self.kind == MAPPING:
            return (*marks, tuple((pair.key.meaning(), pair.value.meaning()) for pair in self.pairs))
        if self.kind == SEQUENCE:
            return (*marks, tuple(item.meaning() for item in self.items))
        return (*marks, self.text, self.plain)

    def anchors(self) -> list[str]:
        """Every anchor in it."""
        inner = [node for pair in self.pairs for node in (pair.key, pair.value)] + list(self.items)
        return [self.anchor] * bool(self.anchor) + [name for node in inner for name in node.anchors()]


def read(text: str, name: str) -> Node | None:
    """The one document of `text`; None where it holds nothing. Raises HostError."""
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError
    except ImportError:
        raise HostError(
            f"editing {name} needs ruamel.yaml",
            "apt install python3-ruamel.yaml, or: pip install 'bawn[team]'",
        ) from None
    try:
        # A stream, so that a text without a line end is never taken for a file's name.
        events = list(YAML(typ="safe", pure=True).parse(io.StringIO(text, newline="")))
    except (YAMLError, ValueError) as error:
        place = getattr(error, "problem_mark", None)
        where = f" line {place.line + 1}:" if place is not None else ""
        why = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise HostError(f"{name} is not YAML:{where} {why}", f"mend {name}") from None
    except RecursionError:
        raise HostError(f"{name} is nested too deeply", f"mend {name}") from None
    kinds = [type(event).__name__ for event in events]
    if kinds.count("DocumentStartEvent") > 1:
        raise HostError(f"{name} holds several YAML documents", "edit it by hand")
    if "DocumentStartEvent" not in kinds:
        return None
    return _build(text, events[kinds.index("DocumentStartEvent") + 1 :])


def _build(text: str, events: list[Any]) -> Node:
    open_ones: list[tuple[Any, list[Node]]] = []
    for event in events:
        kind = type(event).__name__
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            open_ones.append((event, []))
            continue
        if kind in ("MappingEndEvent", "SequenceEndEvent"):
            start, inner = open_ones.pop()
            node = _collection(text, start, event, inner)
        else:
            node = _leaf(event)
        if not open_ones:
            return node
        open_ones[-1][1].append(node)
    raise AssertionError("the parser ended a document in the middle")


def _leaf(event: Any) -> Node:
    start, end = event.start_mark.index, event.end_mark.index
    column = event.start_mark.column
    if type(event).__name__ == "AliasEvent":
        return Node(ALIAS, start, end, column, event.anchor)
    plain = not event.style
    tag = _tag(event)
    return Node(SCALAR, start, end, column, event.value, plain, False, event.anchor or "", tag)


def _collection(text: str, start: Any, end: Any, inner: list[Node]) -> Node:
    mapping = type(start).__name__ == "MappingStartEvent"
    pairs = []
    for key, value in zip(inner[::2], inner[1::2], strict=True) if mapping else ():
        at = key.end
        while text[at : at + 1].isspace():
            at += 1
        pairs.append(Pair(key, at if text[at : at + 1] == ":" else -1, value))
    return Node(
        MAPPING if mapping else SEQUENCE,
        start.start_mark.index,
        end.end_mark.index,
        start.start_mark.column,
        flow=bool(start.flow_style),
        anchor=start.anchor or "",
        tag=_tag(start),
        pairs=tuple(pairs),
        items=() if mapping else tuple(inner),
    )


def _tag(event: Any) -> str:
    tag = event.tag
    return "" if tag is None else str(tag)
