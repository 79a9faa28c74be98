"""Values with named fields that JAX sees as trees of them: frozen, made by a class statement as dataclasses are.

    class Spring(PyTree):
        stiffness: float
        name: str = field(static=True, default="spring")

Fields are children of the tree. Those that are ``static`` belong to its structure: they can be hashed, and differ from
program to program, not from number to number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar, dataclass_transform

from shadowfit.lazy_jax import jax, once_loaded

Own = TypeVar("Own", bound="PyTree")


def field(
    *,
    static: bool = False,
    converter: Callable[[Any], Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """A field of a tree; ``converter`` makes what it holds of what it is given. ``options`` as of dataclasses."""
    return dataclasses.field(metadata={**(metadata or {}), "static": static, "converter": converter}, **options)


@dataclass_transform(field_specifiers=(field, dataclasses.field))
class PyTree:
    """Base of values that are trees of their fields."""

    _converters: ClassVar[dict[str, Callable[[Any], Any] | None]] = {}
    """Of all fields by name."""
    _children: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that are children."""
    _static: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that belong to the structure."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        dataclasses.dataclass(eq=False, repr=False)(cls)
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]  # which it has just become
        cls._converters = {one.name: one.metadata.get("converter") for one in fields}
        cls._children = tuple(one.name for one in fields if not one.metadata.get("static"))
        cls._static = tuple(one.name for one in fields if one.metadata.get("static"))
        once_loaded(cls._register)

    @classmethod
    def _register(cls) -> None:
        """Tell JAX how values of the class are taken apart and put together."""
        keys = tuple(map(jax.tree_util.GetAttrKey, cls._children))

        def flatten_with_keys(tree: PyTree) -> tuple[Iterable[tuple[Any, Any]], tuple[Any, ...]]:
            values, structure = tree.taken_apart()
            return zip(keys, values, strict=True), structure

        jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, cls.put_together, cls.taken_apart)

    def taken_apart(self) -> tuple[list[Any], tuple[Any, ...]]:
        """Children, and what belongs to the structure."""
        held = vars(self)
        return [held[name] for name in self._children], tuple([held[name] for name in self._static])

    @classmethod
    def put_together(cls: type[Own], structure: tuple[Any, ...], values: Iterable[Any]) -> Own:
        """The inverse, with anything in place of the children."""
        # Not through ``__init__``: trees hold tracers, shapes and more in place of numbers.
        tree = object.__new__(cls)
        vars(tree).update(zip(cls._children, values, strict=True))
        vars(tree).update(zip(cls._static, structure, strict=True))
        return tree

    def __setattr__(self, name: str, value: Any) -> None:
        """Fields are set once, when a value is made."""
        if name not in self._converters or name in vars(self):
            raise dataclasses.FrozenInstanceError(f"{type(self).__name__}.{name} cannot be set; make another one")
        convert = self._converters[name]
        vars(self)[name] = value if convert is None else convert(value)

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"{type(self).__name__}.{name} cannot be taken away")

    def __getstate__(self) -> dict[str, Any]:
        """What is kept of a value elsewhere: its fields, not what was found out about them."""
        return {name: vars(self)[name] for name in self._converters}

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={vars(self).get(name)!r}" for name in self._converters)
        return f"{type(self).__name__}({inside})"

    def having(self: Own, **fields: Any) -> Own:
        """The same with other contents of some fields, as they are given: nothing is converted or checked."""
        unknown = set(fields) - set(self._converters)
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        tree = object.__new__(type(self))
        vars(tree).update({name: vars(self)[name] for name in self._converters}, **fields)
        return tree
