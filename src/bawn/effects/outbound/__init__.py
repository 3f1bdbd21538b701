"""The outbound file guard at work: what `bawn.outbound` located is opened, looked at, handed over.

    policy --load--> Guard                    roots opened once, masks resolved once
    candidates --guard--> verdicts, and the open descriptor of each allowed file
    descriptor --stage--> a private copy      or handed to the gateway itself (serve, SCM_RIGHTS)
    verdicts --audit--> outbound.log

For programs:

    from bawn.effects.outbound.load import load
    guard = load(policy, dirs)                           # a policy that is trusted
    for verdict, fd in guard.files("MEDIA:~/vaults/notes/out/a.pdf"):
        ...                                              # fd is open where verdict.allowed; close it

**How a file is opened.** `openat2` beneath the root's own descriptor with RESOLVE_BENEATH,
NO_MAGICLINKS, NO_SYMLINKS and NO_XDEV. RESOLVE_BENEATH alone would refuse every absolute link, also
one that leads from the root into the root, and would leave which names were passed to a later look;
so where a link is on the way, each link is read and followed here, by name, against the roots, and
what is left, without a link, is opened by that same call. A swap between the two makes that call
fail. What is then judged is the descriptor: fstat, and its own path by /proc/self/fd.
"""
