"""What lies in every mounted tree that a plan must know of: masked names, files the host runs,
sockets, policies, git's pointers, submounts.

    observe(profile, paths)   a TreeFact for each mount source; nested ones are not walked twice
    walk(source, masks)       one tree by itself
    again(trees, root)        the same questions after the run (`plan.scan` compares)
"""

from collections.abc import Iterable

from bawn.facts import mountinfo
from bawn.facts.model import PathFact, Submount, TreeFact
from bawn.facts.paths import Resolver
from bawn.facts.walker import CaseProbe, Masks, Walker, detect_casefold
from bawn.policy.model import Profile
from bawn.policy.pathtext import ancestors, within
from bawn.policy.patterns import problem
from bawn.typed import NamedTuple

_KERNEL = ("/proc", "/sys", "/dev")


class Root(NamedTuple):
    """A mount source (a directory, resolved) and the masks of its mount."""

    source: str
    masks: Masks


def root(source: str, masks: Iterable[str]) -> Root:
    """Masks that are no patterns are left out: the plan refuses them."""
    return Root(source, tuple((source, mask) for mask in masks if not problem(mask)))


def walk_all(
    roots: Iterable[Root],
    table: mountinfo.MountTable,
    probe: CaseProbe = detect_casefold,
    resolver: Resolver | None = None,
) -> tuple[TreeFact, ...]:
    """A TreeFact for each root, every directory listed once.

    What lies below a nested root belongs to that one; the masks of the outer ones hold in it too.
    """
    own: dict[str, Masks] = {}
    for source, masks in roots:
        own[source] = (*own.get(source, ()), *masks)
    # dict.fromkeys: without duplicates, in order
    hold = {
        source: tuple(dict.fromkeys(mask for path in ancestors(source)[::-1] for mask in own.get(path, ())))
        for source in sorted(own)
    }
    walker = Walker(hold, table, probe)
    for source in hold:
        if source not in walker.trees:
            walker.run(source)
    resolver = resolver or Resolver("", table)
    return tuple(walker.trees[source].fact(_submounts(source, hold, table, resolver)) for source in hold)


def _submounts(
    source: str, roots: dict[str, Masks], table: mountinfo.MountTable, resolver: Resolver
) -> tuple[Submount, ...]:
    """The mounts below `source` that no nested root accounts for."""
    return tuple(
        Submount(entry.point, entry.fstype, entry.read_only, resolver.follow(entry.point))
        for entry in table.below(source)
        if next(path for path in ancestors(entry.point) if path in roots) == source
    )


def walk(
    source: str,
    masks: Iterable[str] = (),
    probe: CaseProbe = detect_casefold,
    table: mountinfo.MountTable | None = None,
) -> TreeFact:
    """One tree by itself."""
    return walk_all([root(source, masks)], table or mountinfo.read(), probe)[0]


def observe(
    profile: Profile,
    paths: tuple[PathFact, ...],
    table: mountinfo.MountTable | None = None,
    probe: CaseProbe = detect_casefold,
) -> tuple[TreeFact, ...]:
    """The trees of every mount source of `profile` that is a directory (`paths`: facts.paths).

    A source that is refused whatever it holds (the home directory and what holds it, the kernel's
    files) is not walked: that could take minutes. The plan never mounts what was not walked.
    """
    table = table or mountinfo.read()
    at = {fact.asked: fact for fact in paths}
    wanted = [(mount.source, mount.mask) for mount in profile.mounts]
    if profile.workdir:
        wanted.insert(0, (profile.workdir, profile.mask))
    lifted = {at[override.path].path for override in profile.overrides if override.path in at}
    home = at["~"].path if "~" in at else ""
    roots = [
        root(at[text].path, masks)
        for text, masks in wanted
        if text in at and at[text].kind == "dir" and not _hopeless(at[text].path, home, lifted)
    ]
    resolver = Resolver("", table)
    trees = walk_all(roots, table, probe, resolver)
    if not profile.git_links:
        return trees
    linked = [root(path, profile.mask) for path in _git_links(trees) if not _hopeless(path, home, set())]
    more = walk_all(linked, table, probe, resolver)
    return (*trees, *(tree._replace(at=resolver.follow(tree.source)) for tree in more))


def _hopeless(path: str, home: str, lifted: set[str]) -> bool:
    if path == "/" or any(within(path, top) for top in _KERNEL):
        return True
    return within(home or "/", path) and path not in lifted


def _git_links(trees: tuple[TreeFact, ...]) -> list[str]:
    """The git directories outside every tree that name one of its `.git` files in return."""
    found = {
        link.common
        for tree in trees
        for link in tree.gitfiles
        if link.acknowledged and link.common and not any(within(link.common, other.source) for other in trees)
    }
    return sorted(path for path in found if not any(above in found for above in ancestors(path)[1:]))


def again(
    trees: tuple[TreeFact, ...], top: str, table: mountinfo.MountTable | None = None
) -> tuple[TreeFact, TreeFact]:
    """(before, after) of the tree at `top`: what `trees` know of it, and one new walk.

    `top` is a mount source or lies in one; the masks that held there before the run hold now.
    """
    sources = {tree.source: tree for tree in trees}
    holder = next(sources[path] for path in ancestors(top) if path in sources)
    roots = [Root(tree.source, tree.masks) for tree in trees if within(tree.source, top)]
    after = walk_all([Root(top, holder.masks), *roots], table or mountinfo.read())
    return _merged(trees, top), _merged(after, top)


def _merged(trees: tuple[TreeFact, ...], top: str) -> TreeFact:
    """Everything that `trees` found below `top`, as one."""
    near = [tree for tree in trees if within(tree.source, top) or within(top, tree.source)]
    return TreeFact(
        top,
        tuple(find for tree in near for find in tree.finds if within(find.path, top)),
        sum(tree.entries for tree in near),
        tuple(one for tree in near for one in tree.unreadable if within(one.path, top)),
        any(tree.casefold for tree in near),
        gitfiles=tuple(one for tree in near for one in tree.gitfiles if within(one.path, top)),
        too_deep=tuple(one for tree in near for one in tree.too_deep if within(one, top)),
    )
