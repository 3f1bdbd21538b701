"""`facts.mountinfo`: captured text in, mounts that can be seen out."""

import pytest

from bawn.errors import HostError
from bawn.facts.mountinfo import MountTable, parse, read

CAPTURED = """\
21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
22 21 0:20 / /proc rw,nosuid,nodev,noexec,relatime shared:2 - proc proc rw
30 21 0:28 / /mnt/my\\040disk\\011x\\134y rw,relatime shared:9 - vfat /dev/sdb1 ro,fmask=0022
31 21 254:0 /home/u/.ssh /mnt/keys ro,relatime shared:1 - ext4 /dev/vda rw
32 21 0:40 / /a rw - tmpfs tmpfs rw
33 32 0:41 / /a/b rw - tmpfs tmpfs rw
34 21 0:42 / /c/d rw - tmpfs tmpfs rw
35 21 0:43 / /c rw master:3 propagate_from:2 - fuse.sshfs me@host:/x rw,user_id=1000
36 35 0:44 / /c rw - xfs /dev/x rw
"""


def test_fields() -> None:
    entries = {entry.point: entry for entry in parse(CAPTURED)}
    disk = entries["/mnt/my disk\tx\\y"]
    assert (disk.fstype, disk.source, disk.device) == ("vfat", "/dev/sdb1", "0:28")
    assert disk.read_only  # by its file system
    assert entries["/mnt/keys"].read_only  # by its mount
    assert not entries["/a"].read_only
    assert entries["/mnt/keys"].root == "/home/u/.ssh"


def test_covered_mounts_cannot_be_seen() -> None:
    entries = parse(CAPTURED)
    points = [(entry.point, entry.fstype) for entry in entries]
    assert ("/a", "tmpfs") in points  # its child does not cover it
    assert ("/a/b", "tmpfs") in points
    assert not [point for point in points if point[0] == "/c/d"]  # /c was mounted over it
    assert [fstype for point, fstype in points if point == "/c"] == ["xfs"]  # the upper of two


def test_below_by_whole_components() -> None:
    table = MountTable(parse("1 0 8:1 / / rw - ext4 d rw\n2 1 8:2 / /vault-x rw - ext4 e rw\n"))
    assert [entry.point for entry in table.below("/")] == ["/vault-x"]
    assert table.below("/vault") == []
    assert table.below("/vault-x") == []


def test_origin() -> None:
    table = MountTable(parse(CAPTURED))
    assert table.origin("/mnt/keys/id") == "254:0/home/u/.ssh/id"
    assert table.origin("/home/u/.ssh/id") == "254:0/home/u/.ssh/id"
    assert table.origin("/") == "254:0/"
    assert table.origin("/a") == "0:40/"
    assert table.origin("/a/x") == "0:40/x"


@pytest.mark.parametrize("line", ["nonsense", "1 0 8:1 / / rw ext4 d rw", "x 0 8:1 / / rw - a b c"])
def test_a_line_that_is_no_mount_is_an_error(line: str) -> None:
    with pytest.raises(HostError):
        parse(line + "\n")


def test_this_machine() -> None:
    assert read().origin("/proc/self").endswith("/self")
