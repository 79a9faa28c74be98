"""Names of kept code: nothing that code is made of is left out of them, and nothing that has no text gets one."""

import copy
import dataclasses

import numpy as np
import pytest

from shadowfit.dynamics.tree import tree_of
from shadowfit.estimation import Options
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.kernels.fingerprint import fingerprint, spelt
from shadowfit.models import builtin
from shadowfit.pytrees import PyTree
from shadowfit.pytrees import field as tree_field
from shadowfit.recordings import Recording
from shadowfit.records import record
from shadowfit.trees import Structure, structure_of


@record(frozen=True)
class Part:
    """A record whose text and comparison leave something out."""

    shown: int
    hidden: int = dataclasses.field(default=0, repr=False, compare=False)


class Law(PyTree):
    factor: float
    part: Part = tree_field(static=True)


def test_fields_count_that_neither_text_nor_comparison_shows():
    one, other = Part(1, 2), Part(1, 3)
    assert one == other
    assert repr(one) == repr(other)
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint([(one,)]) != fingerprint([(other,)])
    assert fingerprint(structure_of(Law(1.0, one))) != fingerprint(structure_of(Law(1.0, other)))


def test_a_field_that_is_added_counts():
    wider = dataclasses.make_dataclass("Part", [("shown", int), ("hidden", int), ("added", int)], frozen=True)
    assert fingerprint(wider(1, 2, 3)) != fingerprint(wider(1, 2, 4))


def test_long_arrays_count_to_the_last_number():
    one, other = np.zeros(100_000), np.zeros(100_000)
    other[50_000] = 1e-300
    assert repr(one) == repr(other)
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) != fingerprint(one.reshape(2, -1))


@pytest.mark.parametrize("value", [object(), lambda: 0, iter([])])
def test_what_has_no_text_of_its_own_is_refused(value):
    with pytest.raises(TypeError, match="no text"):
        fingerprint(("key", value))


def parts_of(value):
    """Records inside a value, itself among them."""
    if isinstance(value, Structure):
        yield from parts_of((value.held, value.children))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from parts_of(one)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in dataclasses.fields(value):
            yield from parts_of(getattr(value, field.name))


@pytest.mark.parametrize("model", ["furuta", "cartpole"])
def test_every_field_of_what_steps_are_made_of_counts(model):
    mechanism = getattr(builtin, model)()
    free = parameter_set(mechanism, [f"{next(iter(mechanism.joints))}.viscous"])
    time = 0.01 * np.arange(9)
    recording = Recording(time, dict.fromkeys((*mechanism.sensors, *mechanism.inputs), time))
    problem = build_problem(mechanism, [recording], free, Options(timestep=0.01))
    whole = (problem.plan, structure_of(mechanism), tree_of(mechanism))
    found = list(parts_of(whole))
    assert len(found) > 5
    for part in found:
        assert spelt(part) in spelt(whole)
        for field in dataclasses.fields(part):
            changed = copy.copy(part)
            vars(changed)[field.name] = "something else"
            assert spelt(changed) != spelt(part), f"{type(part).__name__}.{field.name}"
