"""The steps of a plan, in order, each with `describe()`. `effects` executes; this only says. Pure."""

from bawn.plan.model import Plan
from bawn.typed import NamedTuple


class Step(NamedTuple):
    """One thing that happens, and what undoes it ("" where nothing is left to undo)."""

    does: str
    undo: str = ""

    def describe(self) -> str:
        return self.does + (f"   [undo: {self.undo}]" if self.undo else "")


def steps(plan: Plan) -> tuple[Step, ...]:
    """What `bawn run` does with this plan."""
    limited = ", ".join(limit.name for limit in plan.limits if limit.by == "cgroup")
    made = [Step(f"make the write root {path} on this machine") for path in plan.creates]
    files = [Step("make a private run directory, named by the run id", "remove it")]
    if plan.seed or plan.settings:
        files.append(Step(f"copy {len(plan.seed)} credentials and {len(plan.settings)} settings"))
    scan = [Step(f"scan {path} for files that the host may execute") for path in plan.scan]
    log = Step("write start and end to the run log")
    if plan.engine == "docker":
        return (
            *made, *files, log,
            Step("docker run, with the argv of `bawn plan --bundle`", "remove the container"),
            Step("compare docker inspect with this plan, both ways", "kill the container"),
            *scan,
        )  # fmt: skip
    cage = "in PID and mount namespaces of its own" + (
        ", in a user namespace" if plan.identity.rootless else ""
    )
    return (
        *made, *files, log,
        *([Step(f"make a control group for {limited}", "remove it")] if limited else []),
        Step(f"start runsc {cage}, which dies with bawn", "the kernel ends it"),
        *([Step("answer file opens by name: late masks")] if plan.guards else []),
        *scan,
    )  # fmt: skip
