"""Settings with a name: the machine's own parameters, and the paper's method."""

import dataclasses

import pytest

from paper.methods import PAPER
from shadowfit import Options
from shadowfit.models import builtin, load_model


@pytest.mark.parametrize(
    ("model", "unknowns"),
    [("furuta", "joint"), ("chain8", "joint"), ("chain9", "joint"), ("fourbar", "joint"), ("incline", "configuration")],
)
def test_physical_parameters_take_joint_coordinates_where_there_are_any(model, unknowns):
    options = Options.physical(load_model(model).mechanism, cutoff=20.0)
    smooth = "deferred" if unknowns == "joint" else "none"
    assert (options.unknowns, options.correction, options.state_weight) == (unknowns, smooth, "auto")
    assert options.cutoff == 20.0


def test_a_change_wins_over_the_preset():
    assert Options.physical(builtin.furuta(), unknowns="configuration").unknowns == "configuration"


def test_the_paper_s_settings_are_those_of_its_reproduction():
    assert dataclasses.asdict(Options.paper()) == dataclasses.asdict(Options(**PAPER.options))
