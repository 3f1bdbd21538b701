"""Builds `agent-base` from packages alone: mmdebstrap and npm, by their ordinary clients.

    lock file -> mmdebstrap --------\\
              -> npm ci (digests) ---+-> one tree -> layer, layout, package list -> its place

Both run at once, die with bawn, and work in directories named by the build. No script of an npm
package runs. Debian's own do, where mmdebstrap runs them: in a chroot, of signed packages.
"""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

from bawn.effects import image_store, process
from bawn.effects.image_tar import Tree
from bawn.effects.remove import remove_tree
from bawn.errors import HostError, ImageError, PolicyError
from bawn.evidence.events import Observer
from bawn.facts.apt import AptFact
from bawn.plan import image as recipe
from bawn.plan.image_rules import check, left_out
from bawn.plan.layer import LayerError, Member
from bawn.plan.sbom import sbom
from bawn.typed import Any

_DEADLINE = 1200.0  # seconds for each of the two clients


def build(
    state: str, lock: recipe.Lock, apt: AptFact, machine: str, observer: Observer
) -> image_store.Record:
    """The image in its place. Raises HostError, PolicyError; then nothing is left and the old one stays."""
    if machine not in recipe.ARCHITECTURES:
        raise HostError(f"there are no packages of the agents for {machine}", "build on x86_64 or aarch64")
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or lock.epoch)
    with image_store.Work(state) as work:
        observer.step(f"fetching {apt.codename} by mmdebstrap, and {len(lock.versions)} packages by npm")
        with ThreadPoolExecutor(2) as pool:
            base = pool.submit(_debian, work, lock, apt, epoch)
            modules = pool.submit(_npm, work, lock)
            parts = base.result(), modules.result()
        observer.step("putting the image together")
        try:
            tree = _tree(f"{work.directory}/rootfs", *parts, machine)
            missing = [
                name for name, path in recipe.programs(machine).items() if path not in tree.merge.entries
            ]
            if missing:
                raise HostError(f"npm fetched no program for {', '.join(missing)}", "bawn image update")
            tree.finish(epoch)
        except LayerError as error:
            raise HostError(f"what was fetched cannot be an image: {error}") from None
        except OSError as error:
            raise HostError(f"the image cannot be put together: {error}") from None
        os.unlink(parts[0])
        remove_tree(os.path.dirname(parts[1]))
        config = recipe.config(machine, recipe.ENV, "", now(epoch))
        found = check(recipe.AGENT_BASE, config, config["architecture"], tree.merge.entries)
        wrong = [f"{f.rule} {f.message}" for f in found if f.severity == "error"]
        if wrong:
            raise ImageError("the image does not hold its contract", tuple(wrong))
        special = left_out(recipe.AGENT_BASE, tree.merge.special, [])
        record = image_store.Record(
            recipe.AGENT_BASE, "", "", "", 0, 0, now(), f"built from {apt.codename} and npm",
            {name: f"/usr/local/bin/{name}" for name in recipe.programs(machine)},
            [[f.rule, f.message] for f in (*found, *special)],
        )  # fmt: skip
        packages = lock.packages["packages"]
        present = [
            p for p in packages if p and f"{recipe.MODULES}/{p[len('node_modules/') :]}" in tree.merge.entries
        ]
        status = tree.text("var/lib/dpkg/status")

        def listed(digest: str) -> Any:
            return sbom(recipe.AGENT_BASE, digest, status, packages, present, apt.distro)

        record = image_store.write(work, tree, config, listed, record)
        work.place(recipe.AGENT_BASE)
        return record


def _debian(work: image_store.Work, lock: recipe.Lock, apt: AptFact, epoch: int) -> str:
    """The base as an archive."""
    root = os.getuid() == 0
    target = f"{work.directory}/base.tar"
    place = image_store.outside(work.id)
    os.mkdir(place, 0o711)
    argv = recipe.mmdebstrap_argv(lock, apt.codename, "root" if root else "unshare", target)
    env = {**process.tool_environment(), "SOURCE_DATE_EPOCH": str(epoch), "TMPDIR": place}
    env["PATH"] += ":/usr/sbin:/sbin"  # an ordinary user's PATH has no chroot
    _run(
        argv,
        env,
        "mmdebstrap",
        "sudo apt-get install mmdebstrap uidmap",
        ("\n".join(apt.sources) + "\n").encode(),
    )
    return target


def _npm(work: image_store.Work, lock: recipe.Lock) -> str:
    """The directory `node_modules`."""
    directory = f"{work.directory}/npm"
    os.mkdir(directory, 0o700)
    for name, data in (("package.json", lock.package), ("package-lock.json", lock.packages)):
        with open(f"{directory}/{name}", "x") as file:
            json.dump(data, file)
    _run(recipe.npm_argv(directory), _npm_environment(), "npm", "sudo apt-get install npm")
    return f"{directory}/node_modules"


def _npm_environment() -> dict[str, str]:
    """The person's own settings of npm count: they say where the packages are."""
    named = {name: value for name, value in os.environ.items() if name.lower().startswith("npm_config_")}
    certificates = {n: os.environ[n] for n in ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE") if n in os.environ}
    proxies = {n: v for n, v in os.environ.items() if n.lower() in ("http_proxy", "https_proxy", "no_proxy")}
    return {**process.tool_environment(), **named, **certificates, **proxies}


def _run(argv: list[str], env: dict[str, str], name: str, fix: str, input: bytes | None = None) -> None:
    """A client that dies when bawn does, and all that it started (as root: in a PID namespace)."""
    if not shutil.which(name, path=env["PATH"]):
        raise HostError(f"{name} is not installed", fix)
    cage = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"] if os.getuid() == 0 else []
    # mmdebstrap tidies up at SIGTERM; where it is not root, nobody else could.
    signal = "KILL" if cage else "TERM"
    answer = process.run(
        ["setpriv", f"--pdeathsig={signal}", *cage, "--", *argv] if cage else
        ["setpriv", f"--pdeathsig={signal}", "--", *argv],
        timeout=_DEADLINE, env=env, input=input,
    )  # fmt: skip
    if answer.code != 0:
        said = answer.err.decode(errors="replace").strip().splitlines() or [answer.complaint]
        raise HostError(f"{name} failed: {' | '.join(said[-4:])[:800]}", process.paste(argv))


def _tree(root: str, base: str, modules: str, machine: str) -> Tree:
    tree = Tree(root)
    with open(base, "rb") as stream:
        tree.unpack(stream, recipe.left_out)
    tree.adopt(modules, recipe.MODULES, recipe.left_out)
    tree.merge.next_layer()
    for path, mode in recipe.DIRECTORIES.items():
        owner = 1000 if path == "home/agent" else 0
        tree.add(Member(path, "dir", mode, owner, owner))
    for path, line in recipe.accounts().items():
        entry = tree.merge.entries.get(path)
        if entry is None:  # a base without shadow passwords
            continue
        old = tree.text(path)
        tree.add(Member(path, "file", entry.mode, entry.uid, entry.gid), recipe.dateless(path, old) + line)
    for path, text in recipe.texts().items():
        tree.add(Member(path, "file", 0o644), text)
    for name, program in recipe.programs(machine).items():
        target = "/" + program
        tree.add(Member(f"usr/local/bin/{name}", "link", target=target))
        entry = tree.merge.entries.get(program)
        if entry:
            tree.merge.entries[program] = entry._replace(mode=0o755)
    return tree


def update(lock: recipe.Lock, wanted: dict[str, str], now: int) -> recipe.Lock:
    """A new lock: `wanted` are versions (or npm's words for them, "latest") by package; what is not named
    keeps its version. Raises HostError, PolicyError."""
    import tempfile

    unknown = sorted(wanted.keys() - lock.versions.keys())
    if unknown:
        raise PolicyError(
            f"not a package of this image: {', '.join(unknown)}", (), f"one of {', '.join(lock.versions)}"
        )
    package = json.loads(json.dumps(lock.package))
    with tempfile.TemporaryDirectory(prefix="bawn-image-") as directory:
        for kind in ("dependencies", "optionalDependencies"):
            for name in package.get(kind, {}).keys() & wanted.keys():
                package[kind][name] = wanted[name]
        _write(f"{directory}/package.json", package)
        _write(f"{directory}/package-lock.json", lock.packages)
        argv = ["npm", "install", "--prefix", directory, "--package-lock-only", "--ignore-scripts",
                "--save-exact", "--omit-lockfile-registry-resolved", "--no-audit", "--no-fund",
                "--loglevel=error"]  # fmt: skip
        _run(argv, _npm_environment(), "npm", "sudo apt-get install npm")
        with open(f"{directory}/package-lock.json") as file:
            packages = recipe.without_places(json.load(file))
    root = packages["packages"][""]
    for kind in ("dependencies", "optionalDependencies"):
        for name in package.get(kind, {}):
            exact = packages["packages"][f"node_modules/{name}"]["version"]
            package[kind][name] = root[kind][name] = exact
    renewed = recipe.Lock(now, lock.debian, package, packages)
    return recipe.parse_lock(recipe.lock_text(renewed), "the new lock")


def _write(path: str, data: object) -> None:
    with open(path, "x") as file:
        json.dump(data, file)


def now(seconds: int | None = None) -> str:
    """A time, this one by default, as UTC."""
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def today() -> int:
    """The begin of this day (UTC), in seconds: the time of a new lock."""
    import time

    return int(time.time()) // 86400 * 86400
