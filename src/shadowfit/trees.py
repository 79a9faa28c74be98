"""Trees of numbers without JAX: taken apart, put together and mapped as `jax.tree` does, leaves in the same order.

Nodes are `PyTree` values, tuples, named ones too, lists, dictionaries (in the order of their sorted keys) and None;
what JAX has been told of besides is asked of JAX, where it is loaded. Everything else is a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from shadowfit.lazy_jax import is_loaded, jax
from shadowfit.pytrees import PyTree

_NUMBERS = frozenset({np.ndarray, np.float64, float, int, bool})
"""What most leaves are, so that nobody has to be asked."""


class Structure:
    """A tree without its leaves: a node's type, what it holds besides children, and the children's structures."""

    __slots__ = ("_hash", "children", "held", "kind", "size")

    def __init__(self, kind: type | None, held: Any, children: Sequence[Structure]) -> None:
        """``kind`` is None for a leaf."""
        self.kind, self.held, self.children = kind, held, tuple(children)
        self.size: int = 1 if kind is None else sum([child.size for child in children])
        """Number of leaves."""
        # Found once, where it is asked for: structures are keys of what is kept, and have many nodes.
        self._hash: int | None = None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Structure) or self.kind is not other.kind or self.size != other.size:
            return False
        return bool(self.held == other.held) and self.children == other.children

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.kind, self.held, self.children))
        return self._hash

    def __repr__(self) -> str:
        return "*" if self.kind is None else f"{self.kind.__qualname__}[{self.held!r}]{self.children!r}"


LEAF = Structure(None, None, ())


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Leaves and structure."""
    leaves: list[Any] = []
    return leaves, _gather(tree, leaves)


def leaves_of(tree: Any) -> list[Any]:
    """Leaves, in the order of `flatten`."""
    leaves: list[Any] = []
    _collect(tree, leaves)
    return leaves


def structure_of(tree: Any) -> Structure:
    """The structure alone."""
    return _gather(tree, [])


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The tree of a structure with these leaves."""
    given = list(leaves)
    if len(given) != structure.size:
        raise ValueError(f"a tree of {structure.size} leaves cannot be put together of {len(given)}")
    return _build(structure, iter(given))


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """A tree of what the function gives for the leaves; of several trees, whose structures must agree, leaf by leaf."""
    leaves, structure = flatten(tree)
    columns = [leaves, *(_up_to(structure, other) for other in others)]
    return _build(structure, map(function, *columns))


def _gather(tree: Any, leaves: list[Any]) -> Structure:
    node = _taken_apart(tree)
    if node is None:
        leaves.append(tree)
        return LEAF
    children, held = node
    return Structure(type(tree), held, [_gather(child, leaves) for child in children])


def _collect(tree: Any, leaves: list[Any]) -> None:
    node = _taken_apart(tree)
    if node is None:
        leaves.append(tree)
        return
    for child in node[0]:
        _collect(child, leaves)


def _taken_apart(tree: Any) -> tuple[Sequence[Any], Any] | None:
    """Children of a node and what it holds besides; None for a leaf."""
    kind = type(tree)
    if kind in _NUMBERS:
        return None
    if isinstance(tree, PyTree):
        return tree.taken_apart()
    if tree is None:
        return (), None
    if kind is tuple or kind is list or (isinstance(tree, tuple) and hasattr(kind, "_fields")):
        return tree, None
    if kind is dict:
        keys = sorted(tree)
        return [tree[key] for key in keys], tuple(keys)
    return _known_to_jax(tree) if is_loaded() else None


def _known_to_jax(tree: Any) -> tuple[Sequence[Any], Any] | None:
    """A node of a kind that JAX has been told of; it is put together by JAX, too."""
    if jax.tree_util.all_leaves([tree]):
        return None
    return jax.tree.flatten(tree, is_leaf=lambda inner: inner is not tree)


def _build(structure: Structure, leaves: Iterator[Any]) -> Any:
    kind = structure.kind
    if kind is None:
        return next(leaves)
    children = [_build(child, leaves) for child in structure.children]
    if issubclass(kind, PyTree):
        return kind.put_together(structure.held, children)
    if kind is type(None):
        return None
    if kind is list:
        return children
    if kind is tuple:
        return tuple(children)
    if kind is dict:
        return dict(zip(structure.held, children, strict=True))
    if structure.held is None:
        return kind(*children)  # a named tuple
    return jax.tree.unflatten(structure.held, children)


def _up_to(structure: Structure, tree: Any) -> list[Any]:
    """What stands in a tree where a structure has its leaves."""
    found: list[Any] = []
    _follow(structure, tree, found)
    return found


def _follow(structure: Structure, tree: Any, found: list[Any]) -> None:
    if structure.kind is None:
        found.append(tree)
        return
    node = _taken_apart(tree)
    same = node is not None and type(tree) is structure.kind and node[1] == structure.held
    if node is None or not same or len(node[0]) != len(structure.children):
        raise ValueError(f"trees differ: {structure.kind.__name__} in one, {type(tree).__name__} in another")
    for child, inner in zip(structure.children, node[0], strict=True):
        _follow(child, inner, found)
