"""docker's side of the kernel's read-only: run by dockerd, as root, for `runsc create`.

runsc lets an open(2) with O_TRUNC empty a file on a mount that it calls read-only, so every read-only
bind of the bundle is given a place of its own, which launch.c mounts read-only by the kernel.
`bawn setup docker` copies this file beside the runtime wrapper; it imports nothing of bawn.

    docker_stage.py LAUNCH [-n] RUNSC [ARG...]      the last are dockerd's own words to the runtime
"""

import json
import os
import sys

WAY = "/run/bawn/way"  # in the box: the directory with the socket of the one way out
OWN = "/run/bawn"  # in the box: PID 1 and what it reads, from a /run that may be noexec (launch.c)


def main(words: list[str]) -> None:
    """Rewrites the bundle and becomes runsc. Raises what goes wrong: then dockerd starts nothing."""
    launch, *rest = words
    flags = [rest.pop(0)] if rest[0] == "-n" else []
    bundle = bundle_of(rest)
    with open(f"{bundle}/config.json") as file:
        config = json.load(file)
    places = f"{bundle}/bawn"
    os.mkdir(places, 0o711)
    records = stage(config.get("mounts") or [], places)
    with open(f"{places}/cage", "w") as file:
        file.write("\0".join([*records, ""]))
    with open(f"{bundle}/config.json.bawn", "w") as file:
        json.dump(config, file)
    os.rename(f"{bundle}/config.json.bawn", f"{bundle}/config.json")
    os.execv(launch, [launch, "-w", *flags, "-m", f"{places}/cage", "--", *opened(rest, config)])


def opened(words: list[str], config: dict[str, object]) -> list[str]:
    """runsc's words for this container: one with a way out may open the Unix sockets in its mounts, and
    no other may. `runsc create` starts the file server, which is what obeys."""
    runsc, *rest = words
    mounts = config.get("mounts")
    ours = [m for m in mounts if m.get("destination") == WAY] if isinstance(mounts, list) else []
    way = any(m.get("type") == "bind" and "ro" in (m.get("options") or []) for m in ours)
    return [runsc, *(["--host-uds=open"] if way else []), *rest]


def bundle_of(words: list[str]) -> str:
    """The value of --bundle or -b (OCI runtime command line); the working directory without one."""
    for number, word in enumerate(words):
        if word in ("--bundle", "-bundle", "-b"):
            return words[number + 1]
        if word.startswith(("--bundle=", "-bundle=")):
            return word.split("=", 1)[1]
    return os.getcwd()


def stage(mounts: list[dict[str, object]], places: str) -> list[str]:
    """Gives each read-only bind a place, in the bundle; the records for launch.c."""
    records: list[str] = []
    for number, mount in enumerate(mounts):
        options = mount.get("options")
        if mount.get("type") != "bind" or not isinstance(options, list) or "ro" not in options:
            continue
        source, place = os.path.realpath(str(mount["source"])), f"{places}/{number}"
        if os.path.isdir(source):
            os.mkdir(place)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        own = str(mount["destination"]).startswith(OWN)
        records += [f"b {source}", f"{'x' if own else 'o'} {place}"]
        mount["source"] = place
    return records


if __name__ == "__main__":
    main(sys.argv[1:])
