"""`bawn image build|update|import|load|verify|ls|rm`: root file systems for boxes, made and looked after."""

import argparse
import json
import os
import sys

from bawn import image
from bawn.cli.prepare import say
from bawn.cli.text import escape
from bawn.effects import image_build, image_docker, image_import, image_store, process
from bawn.effects.atomic import write_atomic
from bawn.errors import HostError, PolicyError
from bawn.facts import apt, dirs
from bawn.plan import image as recipe

HELP = "Images for boxes: build agent-base, import one of your own, check and remove them."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    one = verbs.add_parser("build", help="build agent-base from Debian's and npm's packages")
    one.add_argument("name", choices=[recipe.AGENT_BASE])
    _common(one)
    one.add_argument("--lock", default="", help="the lock file (default: your own, else the one of bawn)")
    one = verbs.add_parser("update", help="renew the lock file: newer versions, by npm")
    one.add_argument("packages", nargs="*", help="PACKAGE or PACKAGE@VERSION (default: all, latest)")
    one.add_argument("--lock", default="", help="the lock file to write (default: your own)")
    one = verbs.add_parser("import", help="take an image of docker's, or an OCI layout")
    one.add_argument("source", help="the name of an image in docker, or a directory (with a / in it)")
    one.add_argument("name")
    one.add_argument("--accept", action="append", default=[], metavar="RULE", help="BWN754: no CA bundle")
    _common(one)
    one = verbs.add_parser("load", help="load an image into docker, as NAME:latest")
    one.add_argument("name")
    one.add_argument("--quiet", action="store_true", help="no progress")
    one = verbs.add_parser("verify", help="is everything of an image as it was made?")
    one.add_argument("name", nargs="?", default="", help="(default: all of them)")
    one = verbs.add_parser("ls", help="the images that are here")
    one.add_argument("--json", action="store_true")
    one = verbs.add_parser("rm", help="remove an image")
    one.add_argument("name")


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--docker", action="store_true", help="then load it into docker")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--json", action="store_true", help="the record of the image, as JSON")


def run(args: argparse.Namespace) -> int:
    """0 done, holds; 1 does not hold."""
    old = os.umask(0o022)
    try:
        return _VERBS[args.what](args, dirs.observe())
    finally:
        os.umask(old)


def _build(args: argparse.Namespace, where: dirs.Dirs) -> int:
    lock = _lock(args.lock or _own(where))
    record = image_build.build(
        where.state, lock, apt.observe(process.run), os.uname().machine, _Said(args.quiet)
    )
    return _made(args, where, record)


def _import(args: argparse.Namespace, where: dirs.Dirs) -> int:
    record = image_import.take(
        where.state, args.source, args.name, tuple(args.accept), os.uname().machine, _Said(args.quiet)
    )
    return _made(args, where, record)


def _made(args: argparse.Namespace, where: dirs.Dirs, record: image_store.Record) -> int:
    if args.docker:
        image_docker.load(where.state, record, _Said(args.quiet))
    if args.json:
        print(json.dumps(record._asdict(), sort_keys=True))
        return 0
    for line in _describe(record):
        print(escape(line))
    return 0


def _describe(record: image_store.Record) -> list[str]:
    lines = [
        f"{record.name}  {record.digest}",
        f"  {record.entries} entries, {record.size / 1e6:.0f} MB, {record.source}",
    ]
    return lines + [f"  {rule} {text}" for rule, text in record.findings]


def _load(args: argparse.Namespace, where: dirs.Dirs) -> int:
    image_docker.load(where.state, image_store.read(where.state, args.name), _Said(args.quiet))
    print(f"docker has {args.name}:latest")
    return 0


def _update(args: argparse.Namespace, where: dirs.Dirs) -> int:
    path = args.lock or _own(where)
    before = _lock(path)
    wanted = {}
    for word in args.packages or before.versions:
        name, _, version = word[1:].partition("@")
        wanted[word[:1] + name] = version or "latest"
    after = image_build.update(before, wanted, image_build.today())
    for name, version in after.versions.items():
        old = before.versions[name]
        print(f"{name} {old}" + (f" -> {version}" if old != version else " stays"))
    if after._replace(epoch=0) == before._replace(epoch=0):
        print("nothing is newer")
        return 0
    try:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        write_atomic(path, recipe.lock_text(after).encode(), 0o644)
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}") from None
    print(f"wrote {path}; next: bawn image build {recipe.AGENT_BASE}")
    return 0


def _own(where: dirs.Dirs) -> str:
    return f"{where.config}/agent-base.lock"


def _lock(path: str) -> recipe.Lock:
    """The lock at `path`; the one that bawn came with where there is none."""
    for place in (path, image.LOCK):
        try:
            with open(place) as file:
                return recipe.parse_lock(file.read(), place)
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise PolicyError(f"cannot read {place}: {error}") from None
    raise HostError("bawn's own lock file is missing", "install bawn again")


def _verify(args: argparse.Namespace, where: dirs.Dirs) -> int:
    names = [args.name] if args.name else image_store.names(where.state)
    failed = False
    for name in names:
        wrong = image_store.verify(where.state, name)
        failed |= bool(wrong)
        digest = image_store.read(where.state, name).digest
        print(f"{name}  " + (f"{len(wrong)} differences" if wrong else f"holds  {digest}"))
        for line in wrong[:20]:
            print(escape(f"  {line}"))
    if not names:
        print("no image is here; bawn image build agent-base makes one")
    return 1 if failed else 0


def _ls(args: argparse.Namespace, where: dirs.Dirs) -> int:
    records = [image_store.read(where.state, name) for name in image_store.names(where.state)]
    if args.json:
        print(json.dumps([record._asdict() for record in records], sort_keys=True))
        return 0
    if not records:
        print("no image is here; bawn image build agent-base makes one", file=sys.stderr)
    for record in records:
        size = f"{record.size / 1e6:.0f} MB"
        print(f"{record.name}  {record.digest[:19]}  {size}  {record.created}  {record.source}")
    return 0


def _rm(args: argparse.Namespace, where: dirs.Dirs) -> int:
    with image_store.Work(where.state) as work:
        work.remove(args.name)
    print(f"removed {args.name}")
    return 0


_VERBS = {
    "build": _build,
    "update": _update,
    "import": _import,
    "load": _load,
    "verify": _verify,
    "ls": _ls,
    "rm": _rm,
}


class _Said:
    """Progress on stderr."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def step(self, text: str) -> None:
        if not self._quiet:
            say(text)

    def warn(self, text: str) -> None:
        say(text)
