"""(Policy, Profile, Facts, command) -> Plan. Pure."""

from bawn.facts.model import Facts
from bawn.plan.agent import NO_AGENT, AgentSetup
from bawn.plan.limits import plan_limits
from bawn.plan.model import NO_WAY, Bind, EnvVar, Finding, Identity, Plan, Tmpfs, WayOut
from bawn.plan.mounts import compile_mounts
from bawn.plan.oci import HOME
from bawn.plan.rules import finding
from bawn.plan.runtime_args import faults
from bawn.policy.model import Policy, Profile

BOX_ID = 1000  # seed 001: never root in the box
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HOME_DIRS = (".tmp",)  # TMPDIR; what follows XDG makes its own directories


def compile_plan(
    policy: Policy,
    profile: Profile,
    facts: Facts,
    command: tuple[str, ...],
    agent: AgentSetup = NO_AGENT,
) -> Plan:
    """The plan of one run. `command` is what the person typed, () for the profile's or agent's own.

    What is wrong stands in `Plan.findings`; the caller refuses a plan with errors.
    """
    identity = identity_of(profile, facts)
    out = _way_out(policy, profile, facts)
    mounts = compile_mounts(profile, facts, identity, policy.path)
    limits = plan_limits(profile, facts)
    argv = _command(profile, command, agent)
    shm = Tmpfs("/dev/shm", profile.limits.tmp, 0o1777, True)
    scratch = (
        Tmpfs("/tmp", profile.limits.tmp, 0o1777, True),
        Tmpfs(HOME, profile.limits.home, 0o700, False),
        *((shm,) if profile.engine == "gvisor" else ()),  # docker makes its own
    )
    return Plan(
        profile=profile.name,
        policy=policy.path,
        policy_sha256=policy.sha256,
        engine=profile.engine,
        runsc=facts.runsc.version if profile.engine == "gvisor" else "",
        image=profile.image,
        image_digest=facts.image.digest,
        rootfs=facts.image.rootfs,
        kernel=facts.host.kernel,
        hostname="bawn",
        identity=identity,
        command=argv,
        workdir=mounts.workdir,
        egress=out.egress,
        binds=(*_system(profile), *_agent_binds(agent, mounts.binds, profile), *mounts.binds),
        tmpfs=(*scratch, *mounts.tmpfs),
        guards=mounts.guards,
        scan=mounts.scan,
        env=_environment(profile, facts, identity, agent),
        limits=limits,
        seed=agent.seed,
        settings=agent.settings,
        overrides=mounts.overrides,
        home_dirs=tuple(sorted({*HOME_DIRS, *_parents(agent)})),
        creates=mounts.creates,
        host_exec=profile.host_exec,
        findings=(*_findings(policy, profile, facts, argv, agent), *out.findings, *mounts.findings),
    )


def identity_of(profile: Profile, facts: Facts) -> Identity:
    """Who the box is, inside and outside.

    As root, bawn acts for the person: SUDO_UID where there is one; else, where the work directory
    belongs to somebody, for its owner; so that what the agent writes belongs to them.
    """
    host = facts.host
    uid, gid = host.invoker_uid, host.invoker_gid
    if profile.engine == "gvisor" and host.uid != 0:
        return Identity(0, 0, uid, gid, rootless=True)
    if uid == 0:
        owner = next((p for p in facts.paths if p.asked == profile.workdir and p.path), None)
        uid, gid = (owner.uid, owner.gid) if owner else (uid, gid)
    if profile.engine == "docker":
        box = (uid, gid) if uid else (BOX_ID, BOX_ID)
        return Identity(*box, *box, rootless=False)
    return Identity(BOX_ID, BOX_ID, uid, gid, rootless=False)


def _system(profile: Profile) -> tuple[Bind, ...]:
    if profile.image != "host":
        return ()
    return (Bind("/usr", "/usr", "ro", True, "system"),)


def _agent_binds(agent: AgentSetup, mounts: tuple[Bind, ...], profile: Profile) -> tuple[Bind, ...]:
    """The agent's package, unless /usr or a mount shows it already."""
    shown = [b.target for b in mounts if b.is_dir]
    shown += ["/usr"] if profile.image == "host" else []
    return tuple(b for b in agent.binds if not any(_inside(b.target, top) for top in shown))


def _inside(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def _command(profile: Profile, typed: tuple[str, ...], agent: AgentSetup) -> tuple[str, ...]:
    return typed or profile.command or agent.argv


def _parents(agent: AgentSetup) -> list[str]:
    """The agent's own directories below HOME, parents included."""
    return ["/".join(d.split("/")[: i + 1]) for d in agent.dirs for i in range(d.count("/") + 1)]


def _environment(profile: Profile, facts: Facts, identity: Identity, agent: AgentSetup) -> tuple[EnvVar, ...]:
    """Built from nothing: bawn's own names, then the agent's, then the policy's."""
    values = {
        "HOME": HOME,
        "LANG": "C.UTF-8",
        "LOGNAME": "agent",
        "PATH": PATH,
        "SHELL": "/bin/sh",
        "TMPDIR": f"{HOME}/.tmp",  # executable, unlike /tmp: npm and native modules need that
        "USER": "agent",
        "XDG_CACHE_HOME": f"{HOME}/.cache",
        "XDG_CONFIG_HOME": f"{HOME}/.config",
        "XDG_DATA_HOME": f"{HOME}/.local/share",
        "XDG_STATE_HOME": f"{HOME}/.local/state",
    }
    if profile.egress != "none":
        from bawn.plan.way import VARIABLES

        values |= dict(VARIABLES)
    values |= dict((*agent.env, *facts.environ, *profile.env))
    named = [EnvVar(name, value) for name, value in values.items()]
    named += [EnvVar(s.name, secret=True) for s in profile.secrets if s.name in facts.have_secrets]
    return tuple(sorted(named))


def _findings(
    policy: Policy,
    profile: Profile,
    facts: Facts,
    argv: tuple[str, ...],
    agent: AgentSetup,
) -> list[Finding]:
    """What is not about mounts."""
    place = f"{policy.path or 'defaults'} profile.{profile.name}"
    found = list(agent.findings)
    for bind in agent.binds:
        if _inside(facts.host.home, bind.target) or bind.target == f"{facts.host.home}/.local":
            text = f"the agent's program would show {bind.target}, which holds more than a program"
            found.append(finding("BWN719", place, text))
    if profile.engine == "gvisor" and facts.runsc.problem:
        found.append(finding("BWN701", "engine gvisor", facts.runsc.problem, fix=facts.runsc.fix))
    if profile.engine == "docker":
        found += _docker_findings(profile, facts, place)
    if profile.engine == "gvisor" and profile.image != "host" and not facts.image.rootfs:
        text = facts.image.problem or f"no image {profile.image!r}"
        found.append(finding("BWN709", place, text, name=profile.image))
    if not argv:
        found.append(finding("BWN703", place, "no command was given and the profile has no agent"))
    for secret in profile.secrets:
        if secret.name not in facts.have_secrets:
            where = secret.file or "bawn's own environment"
            text = f"{secret.name} is not in {where}"
            found.append(finding("BWN704", place, text, name=secret.name))
    if profile.egress == "bridge" and (profile.engine, facts.host.uid) != ("docker", 0):
        text = f"egress = 'bridge' with engine {profile.engine}, as user {facts.host.uid}"
        found.append(finding("BWN705", place, text))
    return found


def _way_out(policy: Policy, profile: Profile, facts: Facts) -> WayOut:
    if profile.egress == "none":
        return NO_WAY
    from bawn.plan.way_out import way_out  # a run without a way out does not pay for it

    return way_out(policy, profile, facts.registries)


def _docker_findings(profile: Profile, facts: Facts, place: str) -> list[Finding]:
    docker = facts.docker
    if docker is None or docker.problem:
        problem = docker.problem if docker else "docker was not looked at"
        return [finding("BWN702", "engine docker", problem, fix=docker.fix if docker else "")]
    found = [finding("BWN707", place, "engine docker needs an image")] if profile.image == "host" else []
    return found + [
        finding(f.rule, "engine docker", f.text, fix=f.fix) for f in faults(docker) if f.severity == "error"
    ]
