"""Values that are trees of their fields: what JAX sees of them, that they stay as they are, and how to get others."""

import copy
import dataclasses
import pickle

import jax
import numpy as np
import pytest

from shadowfit.pytrees import PyTree, field
from trees import same_trees


class Spring(PyTree):
    stiffness: float = field(converter=np.asarray)
    name: str = field(static=True)
    rest: float = 0.5

    def force(self, length):
        return -self.stiffness * (length - self.rest)


class Pair(PyTree):
    springs: tuple[Spring, ...]

    def __init__(self, *springs):
        self.springs = springs


def test_fields_are_children_and_static_ones_structure():
    leaves, structure = jax.tree.flatten(Spring(2.0, "a"))
    assert leaves == [2.0, 0.5]
    assert structure != jax.tree.structure(Spring(2.0, "b"))
    assert "'a'" in str(structure)  # which names kept code
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(Pair(Spring(2.0, "a")))]
    assert paths == [".springs[0].stiffness", ".springs[0].rest"]


def test_whatever_jax_puts_in_place_of_numbers_is_not_converted():
    structure = jax.tree.structure(Spring(2.0, "a"))
    assert jax.tree.unflatten(structure, [None, "anything"]).rest == "anything"


def test_transformations_go_through():
    slope = jax.grad(lambda spring: spring.force(1.5))(Spring(2.0, "a"))
    assert same_trees(slope, Spring(-1.0, "a", 2.0))
    assert jax.jit(lambda spring: spring.force(1.5))(Spring(2.0, "a")) == -2.0


def test_values_are_converted_when_made_and_then_stay():
    spring = Spring(2, "a")
    assert isinstance(spring.stiffness, np.ndarray)
    for change in (
        lambda: setattr(spring, "rest", 1.0),
        lambda: setattr(spring, "new", 1.0),
        lambda: delattr(spring, "rest"),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()


def test_others_are_made_of_them():
    spring = Spring(2.0, "a")
    assert same_trees(spring.having(rest=1.0), Spring(2.0, "a", 1.0))
    assert same_trees(dataclasses.replace(spring, rest=1.0), Spring(2.0, "a", 1.0))
    with pytest.raises(TypeError, match="no field lenght"):
        spring.having(lenght=1.0)


def test_copies_and_pickles_are_the_same():
    pair = Pair(Spring(2.0, "a"), Spring(3.0, "b"))
    assert same_trees(copy.deepcopy(pair), pair)
    assert "stiffness=array(3.)" in repr(pair)
    assert same_trees(pickle.loads(pickle.dumps(pair)), pair)
