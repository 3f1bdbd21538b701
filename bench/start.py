"""How long `bawn run -- true` takes, beside the bare runsc of the same bundle, and under docker.

    sudo PYTHONPATH=. .venv/bin/python bench/start.py [--runs 21]    (an installed bawn; root)

Whole processes, in turn, wall-clock medians. `same bundle` is what bawn writes for the run, given to
`runsc run` by hand, with runsc's own cgroups; nothing of bawn is in it. docker is a private daemon;
its `docker run` is the hardened one of bawn's contract, typed by hand, once with runsc registered as
`runsc install` would (and the remedy this kernel needs), once with bawn's runtime program.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.system.lab import IMAGE, Lab, runsc_of

BAWN = os.environ.get("BAWN", "/usr/local/bin/bawn")


def timed(argv: list[str], cwd: Path) -> float:
    """Milliseconds of one run, which must succeed."""
    start = time.perf_counter()
    subprocess.run(argv, cwd=cwd, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def same_bundle(work: Path, where: Path) -> list[str]:
    """Writes the bundle of `bawn run -- true` in `work`, and the bare command that runs it."""
    shown = subprocess.run(
        [BAWN, "plan", "--bundle", "--", "true"], cwd=work, check=True, capture_output=True, text=True
    )
    config = json.loads(shown.stdout)
    image = max(Path("/run/bawn/rootfs").glob("host-*"), key=lambda p: p.stat().st_mtime)
    init = max(Path("/run/bawn").glob("init-*"), key=lambda p: p.stat().st_mtime)
    root = where / "rootfs"
    shutil.copytree(image, root, symlinks=True)
    (where / "empty").touch()
    for mount in config["mounts"]:
        mount["source"] = mount["source"].replace("RUN/init", str(init)).replace("RUN/", f"{where}/")
        target = root / mount["destination"].lstrip("/")
        if mount["type"] == "bind" and os.path.isfile(mount["source"]):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        else:
            target.mkdir(parents=True, exist_ok=True)
    config["root"]["path"] = str(root)
    config["process"]["args"] = ["true"]
    (where / "config.json").write_text(json.dumps(config))
    return ["runsc", f"--root={where}/state", "--network=none", "run", f"--bundle={where}", "bench"]


# The remedy of DESIGN 10 as a person would write it.
BY_HAND = """#!/bin/sh
exec unshare --mount --propagation slave sh -c \\
  'mount -t tmpfs none /proc/sys/net && exec runsc "$@"' runsc "$@"
"""


def docker_cases(lab: Lab, work: Path) -> dict[str, Callable[[], float]]:
    """The same start under a private dockerd."""
    plain = lab.root / "by-hand"
    plain.write_text(BY_HAND)
    plain.chmod(0o755)
    config = {"bridge": "none", "runtimes": {"by-hand": {"path": str(plain)}}}
    lab.config.write_text(json.dumps(config))
    lab.import_image()
    runsc_of(lab, BAWN)
    os.environ.update(lab.environment)
    typed = (
        "docker run --rm --runtime RUNTIME --user 1000:1000 --cap-drop ALL --security-opt no-new-privileges "
        "--read-only --tmpfs /tmp:rw,noexec,nosuid,size=64m --tmpfs /home/agent:rw,exec,nosuid,size=256m "
        "--memory 2g --memory-swap 2g --cpus 2 --pids-limit 512 --ulimit nofile=4096:4096 --ipc private "
        f"--workdir {work} --mount type=bind,source={work},target={work} --network none {IMAGE} true"
    )
    bawn = [BAWN, "run", "-q", "--engine", "docker", "--image", IMAGE, "true"]
    return {
        "docker run hardened, runsc by hand": lambda: timed(
            typed.replace("RUNTIME", "by-hand").split(), work
        ),
        "docker run hardened, bawn's runtime": lambda: timed(typed.replace("RUNTIME", "runsc").split(), work),
        "docker run hardened, runc": lambda: timed(typed.replace("RUNTIME", "runc").split(), work),
        "bawn run --engine docker -- true": lambda: timed(bawn, work),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--no-docker", action="store_true")
    args = parser.parse_args()
    runs = args.runs
    lab = contextlib.nullcontext() if args.no_docker else Lab()
    work = Path(tempfile.mkdtemp(prefix="bawn-bench-", dir="/var/tmp"))
    bundle = Path(tempfile.mkdtemp(prefix="bawn-bundle-", dir="/var/tmp"))
    bundle.chmod(0o755)
    os.chown(work, 1000, 1000)  # whom a box of docker is
    try:
        with lab as docker:
            (work / ".env").write_text("x")
            timed([BAWN, "run", "-q", "true"], work)
            sample = work / "policy.toml"
            sample.write_text("version = 1\n[profile.default]\n")
            bare = same_bundle(work, bundle)
            cases: dict[str, Callable[[], float]] = {
                "bare runsc run, same bundle": lambda: timed(bare, work),
                "bawn run -- true": lambda: timed([BAWN, "run", "-q", "true"], work),
                "bawn --help": lambda: timed([BAWN, "--help"], work),
                "bawn check": lambda: timed([BAWN, "check", "--policy", str(sample)], work),
            }
            if docker:
                cases |= docker_cases(docker, work)
            figures: dict[str, list[float]] = {name: [] for name in cases}
            for number in range(runs + 1):
                for name, case in cases.items():
                    took = case()
                    if number:
                        figures[name].append(took)
            base = statistics.median(figures["bare runsc run, same bundle"])
            print("| what | median ms | min | max | x bare runsc |\n|---|---|---|---|---|")
            for name, row in figures.items():
                median = statistics.median(row)
                print(f"| {name} | {median:.0f} | {min(row):.0f} | {max(row):.0f} | {median / base:.2f} |")
    finally:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(bundle, ignore_errors=True)


if __name__ == "__main__":
    main()
