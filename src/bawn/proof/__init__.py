"""Does it hold: what is expected of a plan, tried live, judged outside.

    world.py     the hosts and names of the lab, as data                 pure
    lab.py       a hermetic network: namespaces without an uplink, taken down without a trace
    provider.py  a model's provider, scripted by the conversation itself                pure
    servers.py   the program that plays those hosts and logs who reached them

A probe's packets go only to addresses of such a lab; it never runs in the machine's own namespace.
"""
