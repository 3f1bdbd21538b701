"""The few names of `typing` that bawn uses at run time, without the import of it.

`bawn run` pays for every import and every class: `typing` costs 10 ms, and its NamedTuple 0.2 ms a
class, nearly all of it the compilation of one constructor. The NamedTuple here makes the same
classes with one shared constructor, in a twentieth of that. A type checker sees `typing` itself.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, NamedTuple, Protocol
else:
    from _collections import _tuplegetter

    class Literal:
        """An annotation only."""

        def __class_getitem__(cls, item):
            return cls

    class Protocol:
        """An annotation only."""

    Any = object

    class _Value(tuple):
        """What every NamedTuple of bawn has; the names are those of `collections.namedtuple`."""

        __slots__ = ()
        _fields = ()
        _field_defaults = {}  # noqa: RUF012

        def __new__(cls, *args, **named):
            fields = cls._fields
            if named or len(args) != len(fields):
                values = cls._field_defaults | dict(zip(fields, args, strict=False)) | named
                wrong = values.keys() ^ set(fields)
                if wrong or len(args) > len(fields) or named.keys() & fields[: len(args)]:
                    raise TypeError(f"{cls.__name__} has the fields {', '.join(fields)}")
                args = [values[field] for field in fields]
            return tuple.__new__(cls, args)

        @classmethod
        def _make(cls, values):
            return cls(*values)

        def _replace(self, **named):
            return type(self)(**(self._asdict() | named))

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            pairs = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({pairs})"

        def __getnewargs__(self):
            return tuple(self)

    class _Meta(type):
        def __new__(mcls, name, bases, body):
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body.pop(field) for field in fields if field in body}
            for number, field in enumerate(fields):
                body[field] = _tuplegetter(number, "")
            body |= {"__slots__": (), "_fields": fields, "_field_defaults": defaults}
            body["__match_args__"] = fields
            return type.__new__(type, name, (_Value,), body)

    _Base = type.__new__(_Meta, "_Base", (), {})

    # An instance with `__mro_entries__`: a base class only, as `typing.NamedTuple` is.
    NamedTuple = type("NamedTuple", (), {"__mro_entries__": lambda self, bases: (_Base,)})()

__all__ = ["Any", "Literal", "NamedTuple", "Protocol"]
