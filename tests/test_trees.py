"""Trees taken apart and put together without JAX: the same leaves, in the same order, as JAX finds."""

import dataclasses
from collections import OrderedDict
from typing import NamedTuple

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowfit.mechanism import Mechanism
from shadowfit.models import load_model
from shadowfit.pytrees import PyTree, field
from shadowfit.trees import flatten, leaves_of, map_leaves, structure_of, unflatten


class Part(PyTree):
    first: object
    second: object
    name: str = field(static=True, default="part")


class Pair(NamedTuple):
    one: object
    other: object


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Foreign:
    """Known to JAX alone."""

    inside: object


numbers = st.floats(allow_nan=False) | st.integers(0, 9) | st.just("text") | st.none()
trees = st.recursive(
    numbers,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(OrderedDict),
        st.builds(Pair, inner, inner),
        st.builds(Part, inner, inner, st.sampled_from(["part", "other"])),
        st.builds(Foreign, inner),
    ),
    max_leaves=8,
)


@given(trees)
def test_leaves_are_those_of_jax_in_its_order(tree):
    leaves, structure = flatten(tree)
    assert leaves == leaves_of(tree) == jax.tree.leaves(tree)
    assert structure.size == jax.tree.structure(tree).num_leaves


@given(trees)
def test_a_tree_is_put_together_again(tree):
    leaves, structure = flatten(tree)
    numbered = unflatten(structure, range(structure.size))
    assert jax.tree.structure(unflatten(structure, leaves)) == jax.tree.structure(tree)
    assert jax.tree.leaves(numbered) == list(range(len(leaves)))


@given(trees, trees)
def test_structures_are_equal_where_those_of_jax_are(tree, other):
    same = jax.tree.structure(tree) == jax.tree.structure(other)
    first, second = structure_of(tree), structure_of(other)
    assert (first == second) == same
    assert first == structure_of(tree)
    assert hash(first) == hash(structure_of(tree))
    if same:
        assert str(first) == str(second)


@given(trees)
def test_mapping_is_that_of_jax(tree):
    doubled = map_leaves(lambda x, y: (x, y), tree, tree)
    expected = jax.tree.map(lambda x, y: (x, y), tree, tree)
    assert jax.tree.structure(doubled) == jax.tree.structure(expected)
    assert jax.tree.leaves(doubled) == jax.tree.leaves(expected)


def test_trees_that_differ_are_not_mapped_together():
    for other in (Part(1.0, 2.0, "other"), Part(1.0, (2.0,)), Pair(1.0, 2.0), [1.0, 2.0]):
        with pytest.raises(ValueError, match="trees differ"):
            map_leaves(lambda x, y: x, Part(1.0, [2.0]), other)


def test_too_few_leaves_make_no_tree():
    with pytest.raises(ValueError, match="2 leaves cannot be put together of 1"):
        unflatten(structure_of(Pair(1.0, 2.0)), [1.0])


@pytest.mark.parametrize("name", ["cartpole", "chain4", "fourbar", "furuta", "incline", "pendulum"])
def test_mechanisms_are_the_same_trees(name):
    mechanism = load_model(name).mechanism
    leaves, structure = flatten(mechanism)
    assert all(mine is theirs for mine, theirs in zip(leaves, jax.tree.leaves(mechanism), strict=True))
    again = unflatten(structure, leaves)
    assert isinstance(again, Mechanism)
    assert jax.tree.structure(again) == jax.tree.structure(mechanism)
    assert all(mine is kept for mine, kept in zip(leaves_of(again), leaves, strict=True))
