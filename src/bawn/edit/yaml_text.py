"""The edit of YAML: spans of the text are replaced, and the result is read again. Pure."""

from collections.abc import Iterator

from bawn.edit.text import Set, decode, indent_unit, line_end, line_start, next_line
from bawn.edit.yaml_tree import ALIAS, MAPPING, SCALAR, Node, Pair, read
from bawn.edit.yaml_write import block, entry, flow, meaning, scalar
from bawn.errors import HostError
from bawn.typed import Any


def edit(data: bytes, name: str, changes: tuple[Set, ...]) -> bytes:
    """`data` with the changes. Raises HostError for what is not YAML, or cannot be edited in place:
    anchors, aliases, tags, merge keys and duplicate keys on the way to a key."""
    mark, text = decode(data, name)
    for change in changes:
        text = _set(text, name, change)
    return (mark + text).encode()


def _set(text: str, name: str, change: Set) -> str:
    root = read(text, name)
    if root is not None:
        _check(root, name, change)
    wanted = _wanted(root, change.path, change.value)
    if root is not None and root.meaning() == wanted:
        return text
    for candidate in _candidates(text, root, change):
        try:
            after = read(candidate, name)
        except HostError:
            continue
        if after is not None and _sorted(after.meaning(), change.path) == _sorted(wanted, change.path):
            return candidate
    raise HostError(
        f"{name}: {change.key} cannot be set without touching the rest", f"set {change.key} by hand"
    )


def _check(root: Node, name: str, change: Set) -> None:
    """Refuses where the key is not alone in its own hand."""
    node = root
    for depth, key in enumerate(change.path):
        here = ".".join(change.path[:depth]) or "the document"
        if wrong := _shared(node):
            raise HostError(f"{name}: {here} {wrong}: an edit would not stay there", "edit it by hand")
        if node.null:
            return
        if node.kind != MAPPING:
            raise HostError(f"{name}: {here} is no mapping, so it has no {key}", f"mend {name}")
        keys = [pair.key.text for pair in node.pairs if pair.key.kind == SCALAR]
        if "<<" in keys or any(pair.key.kind == ALIAS for pair in node.pairs):
            raise HostError(f"{name}: {here} takes keys from elsewhere (<<)", "edit it by hand")
        if keys.count(key) > 1:
            raise HostError(
                f"{name}: {'.'.join(change.path[: depth + 1])} stands there twice", f"mend {name}"
            )
        pair = _pair(node, key)
        if pair is None:
            return
        if pair.colon < 0 or pair.key.anchor or pair.key.tag:
            raise HostError(f"{name}: the key {key} has an unusual form", "edit it by hand")
        node = pair.value
    if (wrong := _shared(node)) or node.anchors():
        raise HostError(
            f"{name}: {change.key} {wrong or 'holds an anchor'}: an edit would not stay there",
            "edit it by hand",
        )


def _shared(node: Node) -> str:
    if node.kind == ALIAS:
        return f"is an alias (*{node.text})"
    if node.anchor:
        return f"has an anchor (&{node.anchor})"
    return f"has a tag ({node.tag})" if node.tag else ""


def _pair(node: Node, key: str) -> Pair | None:
    return next((pair for pair in node.pairs if pair.key.kind == SCALAR and pair.key.text == key), None)


def _nested(path: tuple[str, ...], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _wanted(node: Node | None, path: tuple[str, ...], value: Any) -> Any:
    """The meaning after the change; a new key is the last of its mapping."""
    if not path or node is None or node.null:
        return meaning(_nested(path, value))
    kind, anchor, tag, pairs = node.meaning()
    found = _pair(node, path[0])
    if found is None:
        new = (meaning(path[0]), meaning(_nested(path[1:], value)))
        return kind, anchor, tag, (*pairs, new)
    inner = _wanted(found.value, path[1:], value)
    at = node.pairs.index(found)
    return kind, anchor, tag, (*pairs[:at], (pairs[at][0], inner), *pairs[at + 1 :])


def _sorted(tree: Any, path: tuple[str, ...]) -> Any:
    """A meaning with the pairs of the mappings on the way in a fixed order: where a new key stands in
    its mapping is of no meaning. Its quotes are not either."""
    if not path or tree[0] != MAPPING:
        return tree
    others = [pair for pair in tree[3] if pair[0][0] != SCALAR or pair[0][3] != path[0]]
    ours = [_sorted(pair[1], path[1:]) for pair in tree[3] if pair[0][0] == SCALAR and pair[0][3] == path[0]]
    return (*tree[:3], tuple(others), tuple(ours))


def _candidates(text: str, root: Node | None, change: Set) -> Iterator[str]:
    """Texts to try, the best first."""
    unit = indent_unit(text, "  ").replace("\t", "  ")
    if root is None or (root.null and root.start == root.end):
        lines = block(_nested(change.path, change.value), "", unit)
        yield _insert_lines(text, len(text), lines)
        return
    if root.null:
        yield text[: root.start] + flow(_nested(change.path, change.value)) + text[root.end :]
        return
    node, path = root, change.path
    while True:
        pair = _pair(node, path[0])
        if pair is None:
            yield from _add(text, node, path[0], _nested(path[1:], change.value), unit)
            return
        if len(path) == 1 or pair.value.null:
            yield from _replace(text, node, pair, _nested(path[1:], change.value), unit)
            return
        node, path = pair.value, path[1:]


def _add(text: str, node: Node, key: str, value: Any, unit: str) -> Iterator[str]:
    """A new key of a mapping: the last, or else the first."""
    if node.flow:
        new = f"{scalar(key)[0]}: {flow(value)}"
        at = node.pairs[-1].value.end if node.pairs else node.start + 1
        yield text[:at] + (", " if node.pairs else "") + new + text[at:]
        return
    lines = entry(key, value, " " * node.column, unit)
    last = _last(text, node)
    yield _insert_lines(text, next_line(text, last - 1), lines)
    yield _insert_lines(text, last, lines)
    raw = max(last, node.pairs[-1].value.end)
    yield _insert_lines(text, raw, lines)
    yield _insert_lines(text, line_start(text, node.start), lines)


def _last(text: str, node: Node) -> int:
    """After the last character of a node that says something."""
    if node.kind == MAPPING and not node.flow:
        pair = node.pairs[-1]
        return pair.colon + 1 if pair.value.start == pair.value.end else _last(text, pair.value)
    if node.items and not node.flow:
        return _last(text, node.items[-1])
    return len(text[: node.end].rstrip())


def _insert_lines(text: str, at: int, lines: list[str]) -> str:
    end = line_end(text, at)
    before = text[:at]
    if before and not before.endswith("\n"):
        before += end
    return before + "".join(line + end for line in lines) + text[at:]


def _replace(text: str, node: Node, pair: Pair, value: Any, unit: str) -> Iterator[str]:
    """Another value for a key."""
    start = pair.colon + 1
    old = pair.value
    if node.flow:
        if old.start == old.end:
            yield f"{text[:start]} {flow(value)}{text[start:]}"
        yield text[: old.start] + flow(value) + text[old.end :]
        return
    spread = isinstance(value, dict | list) and value
    new = flow(value)
    below = "\n" in text[start : old.start] and old.start < old.end
    indent = old.column if below and not old.flow and old.kind != SCALAR else pair.key.column + len(unit)
    lines = block(value, " " * indent, unit) if spread else []
    if old.start == old.end:  # nothing is written after the colon
        if spread:
            yield _insert_lines(text, next_line(text, start), lines)
        yield f"{text[:start]} {new}{text[start:]}"
        return
    last = _last(text, old)
    if not below:
        rest = text[last:]
        if spread:
            head = text[: old.start].rstrip(" ")
            tail = rest[: next_line(rest, 0)]
            yield _insert_lines(head + rest, len(head) + len(tail), lines)
        yield text[: old.start] + new + rest
        return
    # Below the key: whole lines go, but those of comments between it and its value stay.
    first, after = line_start(text, old.start), next_line(text, last - 1)
    if spread:
        yield _insert_lines(text[:first] + text[after:], first, lines)
    yield f"{text[:start]} {new}{text[start:first]}{text[after:]}"
