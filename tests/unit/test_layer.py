"""Layers as anybody may make them: what is taken, what is refused, what a whiteout hides."""

import pytest

from bawn.plan.layer import LayerError, Make, Member, Merge, Remove, plain


def file(name: str, **more: object) -> Member:
    return Member(name, "file", **more)  # type: ignore[arg-type]


def merged(*layers: list[Member]) -> Merge:
    merge = Merge()
    for layer in layers:
        merge.next_layer()
        for member in layer:
            merge.admit(member)
    return merge


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("./usr//bin/x", "usr/bin/x"),
        ("/etc/x", "etc/x"),
        ("./", ""),
        ("a/./b/", "a/b"),
        ("..a/b..", "..a/b.."),
    ],
)
def test_plain(name: str, path: str) -> None:
    assert plain(name) == path


LINK = Member("door", "link", target="/etc")
# name -> (layers before, the member that is refused, a part of why)
HOSTILE: dict[str, tuple[list[list[Member]], Member, str]] = {
    "upwards": ([], file("../../etc/passwd"), "leads upwards"),
    "upwards inside": ([], file("usr/../../x"), "leads upwards"),
    "upwards absolute": ([], file("/../x"), "leads upwards"),
    "below a link": ([[LINK]], file("door/passwd"), "which is a link"),
    "below a link of this layer": ([[LINK]], Member("door/x/y", "dir"), "which is a link"),
    "below a file": ([[file("a")]], file("a/b"), "which is a file"),
    "device": ([], Member("usr/bin/sda", "device"), "is a device file"),
    "device named dev": ([], Member("dev", "device"), "is a device file"),
    "fifo": ([], Member("tmp/pipe", "fifo"), "is a named pipe"),
    "unknown kind": ([], Member("x", "other"), "no file system has"),
    "hard link out": ([], Member("x", "hard", target="../../etc/shadow"), "leads upwards"),
    "hard link to the host": ([], Member("x", "hard", target="/etc/shadow"), "no file of this image"),
    "hard link to a link": ([[LINK]], Member("x", "hard", target="door"), "no file of this image"),
    "hard link through a link": ([[LINK]], Member("x", "hard", target="door/shadow"), "no file of this"),
    "hard link to a directory": ([[Member("d", "dir")]], Member("x", "hard", target="d"), "no file of"),
    "hard link to itself": ([[file("x")]], Member("x", "hard", target="x"), "no file of this image"),
    "not UTF-8": ([], file("caf\udce9"), "not UTF-8"),
    "link not UTF-8": ([], Member("x", "link", target="caf\udce9"), "not UTF-8"),
    "NUL": ([], file("a\0b"), "holds a NUL"),
    "empty link": ([], Member("x", "link"), "cannot be one"),
    "long name": ([], file("n" * 256), "longer than the kernel allows"),
    "long path": ([], file("/".join(["n" * 200] * 25)), "longer than the kernel allows"),
    "deep": ([], file("/".join(["n"] * 101)), "deeper than"),
    "root is a link": ([], Member("./", "link", target="/"), "no directory"),
    "whiteout of nothing": ([], file("a/.wh."), "names nothing"),
    "whiteout upwards": ([], file("a/.wh..."), "names nothing"),
    "whiteout of itself": ([], file("a/.wh.."), "names nothing"),
    "whiteout of a whiteout": ([], file("a/.wh..wh.aufs"), "names nothing"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(name: str) -> None:
    before, member, why = HOSTILE[name]
    merge = merged(*before)
    there = dict(merge.entries)
    merge.next_layer()
    with pytest.raises(LayerError, match=why):
        merge.admit(member)
    assert merge.entries.keys() == there.keys() or name in ("below a file",)


def test_a_name_twice() -> None:
    with pytest.raises(LayerError, match="is there twice"):
        merged([file("a"), file("./a")])
    with pytest.raises(LayerError, match="is there twice"):
        merged([file("a/b"), Member("a", "link", target="/etc")])
    assert merged([Member("a", "dir"), file("a/b"), Member("a", "dir", 0o700)]).entries["a"].mode == 0o700


def test_a_layer_replaces() -> None:
    merge = merged([file("a/b"), file("a/c")])
    merge.next_layer()
    assert merge.admit(Member("a", "link", target="x")) == [
        Remove("a"), Make(merge.entries["a"]),
    ]  # fmt: skip
    assert set(merge.entries) == {"a"}


def test_whiteouts_are_for_lower_layers() -> None:
    lower = [file("d/old"), file("d/sub/old"), file("gone")]
    merge = merged(lower, [file("d/new"), file("d/.wh..wh..opq"), file(".wh.gone"), file(".wh.never")])
    assert set(merge.entries) == {"d", "d/new"}
    merge = merged(lower, [file("d/sub/new"), file(".wh.d")])  # the upper layer brought d/sub again
    assert set(merge.entries) == {"d", "d/sub", "d/sub/new", "gone"}


def test_a_whiteout_through_a_link_hides_nothing() -> None:
    merge = merged([file("etc/passwd"), LINK], [file("door/.wh.passwd")])
    assert set(merge.entries) == {"etc", "etc/passwd", "door"}


def test_hard_links_share() -> None:
    merge = merged([file("a", mode=0o4755), Member("b", "hard", target="./a", mode=0o6777)])
    assert merge.entries["b"] == merge.entries["a"]._replace(path="b")
    assert merge.entries["a"].mode == 0o755


def test_special_bits_are_left_out_and_told() -> None:
    merge = merged([
        file("su", mode=0o4755), file("wall", mode=0o2755), file("ping", capabilities=True),
        Member("mail", "dir", 0o2775), Member("tmp", "dir", 0o1777), Member("dev/null", "device"),
    ])  # fmt: skip
    assert merge.special == ["su", "wall", "ping", "mail"]
    assert not any(entry.mode & 0o6000 for entry in merge.entries.values())
    assert merge.entries["tmp"].mode == 0o1777
    assert merge.devices == ["dev/null"] and "dev/null" not in merge.entries


def test_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bawn.plan.layer.MAX_ENTRIES", 3)
    with pytest.raises(LayerError, match="more than 3"):
        merged([file(str(n)) for n in range(4)])
