"""Images of others, as anybody may make them: what is taken, what is refused, what is left behind."""

import json
import os
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from bawn.effects import image_import, image_store, image_tar
from bawn.errors import BawnError, ImageError, UsageError
from bawn.evidence.events import Silent
from tests.unit.image_world import GOOD, layout, member, tar

BASE = tar(files=GOOD)


def take(tmp_path: Path, source: Path, *accept: str) -> image_store.Record:
    return image_import.take(str(tmp_path / "state"), str(source), "mine", accept, "x86_64", Silent())


def left(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "state" / "images").iterdir())


def tree(tmp_path: Path) -> Path:
    return tmp_path / "state" / "images" / "mine" / "rootfs"


def test_an_image(tmp_path: Path) -> None:
    su = tar(member("usr/bin/su", mode=0o4755), member("usr/bin/link", tarfile.SYMTYPE, linkname="/etc"),
             member("usr/bin/again", tarfile.LNKTYPE, linkname="usr/bin/su"),
             member("dev/null", tarfile.CHRTYPE), member("usr/bin/.wh.tool"))  # fmt: skip
    record = take(tmp_path, layout(tmp_path / "oci", BASE, su))
    assert [rule for rule, _ in record.findings] == ["BWN757", "BWN756", "BWN758"]
    assert not (tree(tmp_path) / "usr/bin/tool").exists()
    assert os.readlink(tree(tmp_path) / "usr/bin/link") == "/etc"
    assert (tree(tmp_path) / "usr/bin/su").stat().st_mode & 0o7777 == 0o755
    assert (tree(tmp_path) / "usr/bin/su").samefile(tree(tmp_path) / "usr/bin/again")
    assert image_store.verify(str(tmp_path / "state"), "mine") == []
    assert left(tmp_path) == ["lock", "mine"]
    again = take(tmp_path, layout(tmp_path / "oci2", BASE, su, packed=False))
    assert (again.digest, again.layer) == (record.digest, record.layer)
    assert left(tmp_path) == ["lock", "mine"]


def test_the_layout_that_was_made_can_be_taken_again(tmp_path: Path) -> None:
    record = take(tmp_path, layout(tmp_path / "oci", BASE))
    os.rename(tmp_path / "state" / "images" / "mine" / "oci", tmp_path / "copy")
    again = take(tmp_path, tmp_path / "copy")
    assert again.layer == record.layer
    assert again.findings == []
    config = json.loads((tmp_path / "copy/blobs/sha256" / record.config[7:]).read_text())
    assert config["config"]["User"] == "1000:1000"
    assert config["config"]["Env"] == ["PATH=/usr/local/bin:/usr/bin", "HOME=/home/agent"]


def raw(*members: tarfile.TarInfo) -> bytes:
    return tar(*members)


def long_header() -> bytes:
    """A pax header that says 64 MiB, which a reader would take into memory."""
    info = member("x", tarfile.XHDTYPE, size=64 << 20)
    return info.tobuf() + b"\0" * 10240


def negative() -> bytes:
    """A size below zero, which older tarfile follows back for ever."""
    block = bytearray(member("x").tobuf())
    block[124:136] = b"\xff" * 12
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % (sum(block[:512]))
    return bytes(block) + b"\0" * 10240


LINK = member("door", tarfile.SYMTYPE, linkname="/etc")
HOSTILE: dict[str, tuple[bytes, str]] = {
    "upwards": (raw(member("../../../../../../tmp/bawn-escaped")), "leads upwards"),
    "through a link": (raw(LINK, member("door/bawn-escaped")), "which is a link"),
    "hard link out": (raw(member("x", tarfile.LNKTYPE, linkname="/etc/hostname")), "no file of this image"),
    "device": (raw(member("usr/sda", tarfile.BLKTYPE)), "is a device file"),
    "fifo": (raw(member("usr/pipe", tarfile.FIFOTYPE)), "is a named pipe"),
    "twice": (raw(member("a"), member("a")), "is there twice"),
    "unknown kind": (raw(member("a", b"Z")), "no file system has"),
    "cut in the middle": (tar(files={"a": b"x" * 4000})[:2000], "damaged"),
    "without an end": (tar(files={"a": b"x" * 512})[:1024], "damaged"),
    "damaged later": (tar(files={"a": b"x" * 512})[:1024] + b"junk" * 512, "damaged"),
    "nothing": (b"", "damaged"),
    "no tar": (b"hello" * 1000, "damaged"),
    "long header": (long_header(), "a header of"),
    "negative size": (negative(), "damaged|a header of"),
    "owner beyond": (raw(member("a", uid=1 << 40)), "an owner with the number"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_layers(tmp_path: Path, name: str) -> None:
    layer, why = HOSTILE[name]
    with pytest.raises(ImageError) as caught:
        take(tmp_path, layout(tmp_path / "oci", BASE, layer))
    assert "BWN751" in caught.value.problems[0]
    assert re.search(why, caught.value.problems[0])
    assert left(tmp_path) == ["lock"]
    assert not os.path.exists("/tmp/bawn-escaped") and not os.path.exists("/etc/bawn-escaped")


def test_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 MB of gzip for what would be 1 GB: it ends at the limit, and before the disk is full."""
    monkeypatch.setattr(image_tar, "LIMIT", 8 << 20)
    bomb = tar(files={"zero": b"\0" * (32 << 20)})
    source = layout(tmp_path / "oci", BASE, bomb)
    assert sum(path.stat().st_size for path in source.rglob("*") if path.is_file()) < 1 << 20
    with pytest.raises(ImageError) as caught:
        take(tmp_path, source)
    assert "larger than" in caught.value.problems[0] or "is 33554432 bytes" in caught.value.problems[0]
    assert left(tmp_path) == ["lock"]


def test_a_sparse_bomb(tmp_path: Path) -> None:
    """An entry that says 8 TB and brings nothing."""
    sparse = {"major": "1", "minor": "0", "name": "huge", "realsize": str(8 << 40)}
    info = member("huge", pax_headers={f"GNU.sparse.{key}": value for key, value in sparse.items()})
    info.size = 512
    with pytest.raises(ImageError):
        take(tmp_path, layout(tmp_path / "oci", BASE, tar(info)))
    assert left(tmp_path) == ["lock"]


CONTRACT: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a token": ({"Env": ["GITHUB_TOKEN=x"]}, {}, "BWN752"),
    "a key in an address": ({"Env": ["INDEX=https://u:hunter2@pypi.test/"]}, {}, "BWN752"),
    "a known kind of key": ({"Env": ["X=sk-ant-abcdefgh"]}, {}, "BWN752"),
    "an open PATH": ({"Env": ["PATH=/tmp/bin:/usr/bin"]}, {}, "BWN753"),
    "an empty part of PATH": ({"Env": ["PATH=/usr/bin:"]}, {}, "BWN753"),
    "a relative PATH": ({"Env": ["PATH=bin"]}, {}, "BWN753"),
    "a volume": ({"Volumes": {"/data": {}}}, {}, "BWN755"),
    "another machine": ({}, {"architecture": "s390x"}, "BWN760"),
}


@pytest.mark.parametrize("name", CONTRACT)
def test_the_contract(tmp_path: Path, name: str) -> None:
    config, top, rule = CONTRACT[name]
    with pytest.raises(ImageError) as caught:
        take(tmp_path, layout(tmp_path / "oci", BASE, config=config, **top))
    assert [problem[:6] for problem in caught.value.problems] == [rule]
    assert "hunter2" not in str(caught.value.problems)
    assert left(tmp_path) == ["lock"]


def test_controls_of_the_contract(tmp_path: Path) -> None:
    env = ["PATH=/opt/tool/bin:/usr/bin", "KEYBOARD=us", "MONKEY=x", "EMPTY_TOKEN=", "URL=https://x.test/"]
    assert take(tmp_path, layout(tmp_path / "oci", BASE, config={"Env": env, "User": "1000"})).findings == []


def test_a_file_that_looks_like_a_key_is_told(tmp_path: Path) -> None:
    keys = tar(files={"root/.ssh/id_ed25519": b"x", "srv/app/.env": b"x", "srv/app/.env.example": b"x"})
    record = take(tmp_path, layout(tmp_path / "oci", BASE, keys, config={"User": "1000:1000"}))
    assert record.findings == [["BWN759", "/root/.ssh/id_ed25519"], ["BWN759", "/srv/app/.env"]]


def test_no_bundle_can_be_accepted(tmp_path: Path) -> None:
    source = layout(tmp_path / "oci", tar(files={"bin/sh": b""}))
    with pytest.raises(ImageError, match="not imported"):
        take(tmp_path, source)
    assert [rule for rule, _ in take(tmp_path, source, "BWN754").findings] == ["BWN754", "BWN757"]
    with pytest.raises(UsageError, match="only BWN754"):
        take(tmp_path, source, "BWN752")


def test_a_place_that_is_a_link(tmp_path: Path) -> None:
    with pytest.raises(ImageError) as caught:
        take(tmp_path, layout(tmp_path / "oci", BASE, tar(member("home", tarfile.SYMTYPE, linkname="/etc"))))
    assert caught.value.problems[0].startswith("BWN761")


def change(source: Path, what: str) -> None:
    """One thing in a layout becomes another."""
    index = json.loads((source / "index.json").read_text())
    digest = index["manifests"][0]["digest"][7:]
    manifest = json.loads((source / "blobs/sha256" / digest).read_text())
    layer = source / "blobs/sha256" / manifest["layers"][0]["digest"][7:]
    match what:
        case "layer":
            layer.write_bytes(layer.read_bytes() + b"\0")
        case "manifest":
            (source / "blobs/sha256" / digest).write_text(json.dumps({**manifest, "layers": []}))
        case "digest":
            index["manifests"][0]["digest"] = "sha256:../../../../etc/passwd"
            (source / "index.json").write_text(json.dumps(index))
        case "link":
            layer.rename(source / "elsewhere")
            layer.symlink_to(source / "elsewhere")
        case "fifo":
            layer.unlink()
            os.mkfifo(layer)
        case "two":
            index["manifests"] *= 2
            (source / "index.json").write_text(json.dumps(index))
        case "json":
            (source / "index.json").write_text("{")
        case "shape":
            (source / "index.json").write_text("[[]]")


@pytest.mark.parametrize("what", ["layer", "manifest", "digest", "link", "fifo", "two", "json", "shape"])
def test_a_layout_that_was_changed(tmp_path: Path, what: str) -> None:
    source = layout(tmp_path / "oci", BASE)
    change(source, what)
    with pytest.raises(BawnError):
        take(tmp_path, source)
    assert left(tmp_path) == ["lock"]


def test_the_old_one_stays_where_the_new_one_is_refused(tmp_path: Path) -> None:
    record = take(tmp_path, layout(tmp_path / "oci", BASE))
    with pytest.raises(ImageError):
        take(tmp_path, layout(tmp_path / "bad", BASE, config={"Env": ["A_TOKEN=x"]}))
    assert image_store.read(str(tmp_path / "state"), "mine") == record
    assert image_store.verify(str(tmp_path / "state"), "mine") == []
