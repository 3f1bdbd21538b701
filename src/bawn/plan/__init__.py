"""What will be done: `(Policy, Facts) -> Plan`. Pure: no I/O, no clock, no environment.

    model     Plan, its parts, canonical JSON and sha256 id
    rules     the table of findings (BWN...)
    mounts    the mount compiler: the list that is the boundary
    compile   everything else: identity, environment, limits
    oci       Plan -> OCI bundle (engine gvisor)
    way       what a box with the one way out has besides
    docker    Plan -> `docker run` argv (engine docker)
    groups    what an @group of an allow-list stands for; lets_out: what a listed host still lets out
    report    Plan -> what an agent can read, write and never see

A finding of severity `error` in a plan means that nothing starts.
"""
