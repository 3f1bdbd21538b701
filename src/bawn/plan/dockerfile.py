"""The Dockerfile that makes `agent-base` from the same lock, for those who have a registry. Pure.

Its last stage copies the whole into one layer: a setuid bit that a later layer takes away would still
be in an earlier one.
"""

from bawn.plan import image as recipe

# docker itself mounts these while it builds
_DOCKERS = ("dev/", "etc/hostname", "etc/hosts", "etc/resolv.conf", "run/", "usr/share/doc/")
_HEAD = """\
# agent-base from its lock file, where there is a registry of images. Written by bawn, not by hand:
# PYTHONPATH=src python -m tests.unit.test_image_dockerfile
#
#   docker build --tag agent-base --build-arg DEBIAN=debian:bookworm-slim DIRECTORY_OF_THIS_FILE
#
# The same packages come from the same lock as by `bawn image build agent-base`; the base is docker's
# Debian instead of mmdebstrap's, so it also holds apt's own libraries.
ARG DEBIAN=debian:bookworm-slim
ARG NODE=node:24-slim

FROM ${NODE} AS modules
WORKDIR /modules
COPY agent-base.lock .
RUN node -e 'const fs = require("fs"), lock = JSON.parse(fs.readFileSync("agent-base.lock")); \\
    fs.writeFileSync("package.json", JSON.stringify(lock.package)); \\
    fs.writeFileSync("package-lock.json", JSON.stringify(lock.packages))'
"""


def dockerfile(lock: recipe.Lock) -> str:
    """The text of the file."""
    npm = recipe.npm_argv("")
    npm = [word for word in npm if word not in ("--prefix", "")]
    removed = [f"/{path}*" if path.endswith("/") else f"/{path}" for path in recipe.LEFT_OUT
               if path not in _DOCKERS and not path.startswith(recipe.MODULES)]  # fmt: skip
    modules = [f"node_modules/{path.removeprefix(recipe.MODULES + '/')}" for path in recipe.LEFT_OUT
               if path.startswith(recipe.MODULES)]  # fmt: skip
    links = [
        f"{architecture}) " + "; ".join(
            f"ln -s /{target} /usr/local/bin/{name}" for name, target in recipe.programs(machine).items()
        ) + " ;;"
        for machine, architecture in recipe.OCI_ARCHITECTURES.items()
    ]  # fmt: skip
    accounts = [f"printf '%s' '{line.rstrip()}' >>/{path} && echo >>/{path}"
                for path, line in recipe.accounts().items()]  # fmt: skip
    root = [
        "apt-get update",
        f"apt-get install --yes --no-install-recommends {' '.join(lock.debian)}",
        "apt-get purge --yes --allow-remove-essential apt",
        f'case "$(dpkg --print-architecture)" in {" ".join(links)} *) exit 1 ;; esac',
        *accounts,
        "install -d -o 1000 -g 1000 /home/agent",
        "find / -xdev -perm /6000 -exec chmod ug-s {} +",
        f"rm -rf {' '.join(removed)}",
    ]
    env = " ".join(f"{name}={value}" for name, value in recipe.ENV)
    steps = " && \\\n    "
    return (
        _HEAD
        + f"RUN {steps.join([' '.join(npm), 'rm -rf ' + ' '.join(modules)])}\n"
        + "\nFROM ${DEBIAN} AS root\n"
        + f"COPY --from=modules /modules/node_modules /{recipe.MODULES}\n"
        + f"RUN {steps.join(root)}\n"
        + "\nFROM scratch\nCOPY --from=root / /\n"
        + f'ENV {env}\nUSER 1000:1000\nWORKDIR /home/agent\nCMD ["/bin/sh"]\n'
    )
