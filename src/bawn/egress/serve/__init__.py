"""The part of the way out that does I/O: one small process for each run.

    main.py      what it is given, and how it begins and ends
    server.py    asyncio: frames of the relay in, conversations, frames out
    resolver.py  the host's own DNS, in threads, behind a bounded cache
    control.py   another policy for a run that is under way; what it is doing
    log.py       one line for each decision

One process a run, not one for all: it knows one profile and needs no secret and no other run's
policy; whose it is, is known by the socket it was given and not by anything a client says; and when
it dies, one way out closes. It costs 25 MiB and begins while the box does.
"""
