"""What a run without a way out has in its place: nothing, and nothing is imported for it."""


class NoWay:
    """`door` is the directory for the box, "" for none; `notes` are for the person, at the end."""

    door = ""
    notes: tuple[str, ...] = ()
    # Of bridge mode alone (effects/bridge.py): the proxy's ADDRESS:PORT, and docker's network.
    address = ""
    network = "none"

    def begun(self) -> None:
        """The container has started, nothing of the agent's runs yet. Raises BawnError."""

    def broken(self) -> str:
        """Why the run must end now; "" while all stands."""
        return ""

    def __enter__(self) -> "NoWay":
        return self

    def __exit__(self, *_: object) -> None:
        pass
