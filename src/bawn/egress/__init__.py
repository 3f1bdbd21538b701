"""The one way out, decided: what a box asks for, against what its profile allows. Sans-io.

    allow lines --plan.groups--> HostPatterns --decide--> Ruleset
    text of a client --authority--> host, port --decide--> Decision          before any DNS
    addresses of DNS --addresses--> Verdicts   --decide.judge--> Judged      the checked ones, or a denial
    bytes of a client --hello--> Hello         --hello.check_hello--> Decision

`rules` is the table of outcomes: each Decision carries a rule's id, a reason, and where a line of
policy would allow it, that line. One function decides for CONNECT, absolute-form, the transparent
way and `bawn why`, so that none can differ from another. What is not understood is denied.

Nothing here opens a socket or asks a resolver: whoever serves hands in what came, and obeys.
"""
