"""Can the user that the box runs as reach, read and write each region: by mode bits alone. Pure.

In gVisor the permission check is made with the command's own ids and without supplementary groups
or access-control lists, so mode bits are all that counts there. On the way to a source it is the
host's kernel that checks; a group there may let bawn's helper pass, so that is a warning.
"""

from bawn.plan.model import Finding
from bawn.plan.regions import Region
from bawn.plan.rules import finding, shell
from bawn.policy.pathtext import within

READ, WRITE, PASS = 4, 2, 1


def granted(uid: int, gid: int, owner: int, group: int, mode: int) -> int:
    """The rwx bits that count for uid:gid (POSIX: owner, else group, else others)."""
    if uid == owner:
        return mode >> 6 & 7
    return (mode >> 3 if gid == group else mode) & 7


def _symbolic(mode: int) -> str:
    return "".join(char if mode >> (8 - at) & 1 else "-" for at, char in enumerate("rwxrwxrwx"))


def check(region: Region, uid: int, gid: int, image_rootfs: bool) -> list[Finding]:
    """Findings for a region, if the box's command is `uid`:`gid` on the host.

    `image_rootfs`: the root file system is an image's, whose /root bars every other user.
    """
    fact = region.fact
    found = []
    if image_rootfs and within(region.path, "/root"):
        found.append(finding("BWN505", region.place, f"{region.path} lies below /root"))
    for one in fact.chain:
        if not granted(uid, gid, one.uid, one.gid, one.mode) & PASS:
            who = f"{one.path} ({_symbolic(one.mode)}, owner {one.uid}:{one.gid})"
            values = {"path": shell(one.path), "uid": uid, "gid": gid}
            rule = "BWN506" if one.mode >> 3 & PASS and uid != one.uid else "BWN501"
            message = f"{who} bars {uid}:{gid} from {region.path}"
            found.append(finding(rule, region.place, message, **values))
            break
    if not fact.path:  # to be made, with the right owner
        return found
    bits = granted(uid, gid, fact.uid, fact.gid, fact.mode)
    need = READ | PASS if region.is_dir else READ
    who = f"{region.path} ({_symbolic(fact.mode)}, owner {fact.uid}:{fact.gid})"
    values = {"path": shell(region.path), "uid": uid, "gid": gid}
    if bits & need != need:
        by_group = uid != fact.uid and fact.mode >> 3 & need == need
        rule = "BWN506" if by_group else "BWN502"
        found.append(finding(rule, region.place, f"{who} cannot be read by {uid}:{gid}", **values))
    elif region.mode == "rw" and not bits & WRITE:
        rule = "BWN504" if region.role == "workdir" else "BWN503"
        found.append(finding(rule, region.place, f"{who} cannot be written by {uid}:{gid}", **values))
    return found
