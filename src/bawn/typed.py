"""The few names of `typing` that bawn uses at run time, without the import of it.

`bawn run` pays for every import: `typing` costs 10 ms, and its NamedTuple 0.2 ms a class, of which
`collections.namedtuple` is a third. A type checker sees `typing` itself.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, NamedTuple, Protocol
else:
    from collections import namedtuple

    class _Subscripted:
        def __class_getitem__(cls, item):
            return cls

    class Literal(_Subscripted):
        """An annotation only."""

    class Protocol(_Subscripted):
        """An annotation only."""

    Any = object

    class _Meta(type):
        def __new__(mcls, name, bases, body):
            """The class as `typing.NamedTuple` makes it: fields from annotations, then methods."""
            fields = list(body.get("__annotations__", {}))
            defaults = [body[field] for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            skip = {*fields, "__module__", "__qualname__", "__annotations__", "__classcell__"}
            for key, value in body.items():
                if key not in skip:
                    setattr(made, key, value)
            made.__annotations__ = body.get("__annotations__", {})
            return made

    def NamedTuple(*args):
        """Only a base class; `class X(NamedTuple)`."""
        raise TypeError("NamedTuple is a base class here")

    NamedTuple.__mro_entries__ = lambda bases: (type.__new__(_Meta, "NamedTuple", (), {}),)


__all__ = ["Any", "Literal", "NamedTuple", "Protocol"]
