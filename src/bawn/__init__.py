"""bawn runs coding agents behind a wall on the machine, and proves that the wall holds.

The folders are the flow, and imports run one way along it (a test holds them to that):

    policy/    what is wanted     text -> Policy                          pure
    facts/     what is there      read-only observation -> Facts
    plan/      what will be done  (Policy, Facts) -> Plan                 pure
    edit/      new text           a few keys set, every other byte kept   pure
    egress/    the one way out    what a box asks for -> allowed or denied; serve/ does the I/O
    relay/     bytes through it   the splice of the proxy
    outbound/  what may be sent   a reply -> the files that may leave     pure
    effects/   doing it           Plan -> running boxes; undo registered first
    proof/     does it hold       the lab, the scripted provider, corpora
    evidence/  the record         typed events, the run log
    teams/     who runs inside    agent presets, AoA targets, Hermes homes
    image/     what agent-base is made of
    box/       inside the wall    init.c is PID 1 in every box; launch.c is the last step outside
    cli/       the face           one file a verb; the only code that prints or exits

Values are `NamedTuple`s, not dataclasses: `bawn run` pays for every class it makes (0.14 ms
against 0.73 ms, and no 9 ms import of `dataclasses`), and they are frozen all the same.
"""

__version__ = "0.1.0"
