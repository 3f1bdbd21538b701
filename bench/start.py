"""How long `bawn run -- true` takes, beside the bare runsc of the same bundle.

    sudo python3 bench/start.py [--runs 21]        (an installed bawn; root, so that both have cgroups)

Whole processes, in turn, wall-clock medians. `same bundle` is what bawn writes for the run, given to
`runsc run` by hand, with runsc's own cgroups; nothing of bawn is in it.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=21)
    runs = parser.parse_args().runs
    work = Path(tempfile.mkdtemp(prefix="bawn-bench-", dir="/var/tmp"))
    bundle = Path(tempfile.mkdtemp(prefix="bawn-bundle-", dir="/var/tmp"))
    bundle.chmod(0o755)
    try:
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
        figures: dict[str, list[float]] = {name: [] for name in cases}
        for number in range(runs + 1):
            for name, case in cases.items():
                took = case()
                if number:
                    figures[name].append(took)
        base = statistics.median(figures["bare runsc run, same bundle"])
        print("| what | median ms | min | max | x bare runsc |\n|---|---|---|---|---|")
        for name, took in figures.items():
            median = statistics.median(took)
            print(f"| {name} | {median:.0f} | {min(took):.0f} | {max(took):.0f} | {median / base:.2f} |")
    finally:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(bundle, ignore_errors=True)


if __name__ == "__main__":
    main()
