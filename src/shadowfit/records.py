"""Frozen dataclasses whose classes are made quickly.

``record(frozen=True)`` is `dataclasses.dataclass` to whoever reads it, type checkers included, and its classes are
dataclasses. The standard one writes and compiles six methods for each class, which for two hundred of them takes longer
than a small fit; here only ``__init__`` is written, and the others, which read the fields, are the same for all.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(*, frozen: bool, eq: bool = True):
        """A decorator, as `dataclasses.dataclass` with the same settings; ``frozen`` is always true."""
        assert frozen

        def decorated(cls):
            for name, method in (_ALWAYS | _COMPARING if eq else _ALWAYS).items():
                if name not in vars(cls):
                    setattr(cls, name, method)
            return dataclasses.dataclass(eq=False, repr=False)(cls)

        return decorated


def _set(self: Any, name: str, value: Any) -> None:
    """Fields are set once, when a value is made."""
    if name in vars(self) or name not in self.__dataclass_fields__:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    vars(self)[name] = value


def _delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _shown(self: Any) -> str:
    shown = (one.name for one in dataclasses.fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _compared(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, one.name) for one in dataclasses.fields(self) if one.compare])


def _equal(self: Any, other: object) -> Any:
    return _compared(self) == _compared(other) if type(self) is type(other) else NotImplemented


def _hashed(self: Any) -> int:
    return hash(_compared(self))


_ALWAYS = {"__setattr__": _set, "__delattr__": _delete, "__repr__": _shown}
_COMPARING = {"__eq__": _equal, "__hash__": _hashed}

__all__ = ["record"]
