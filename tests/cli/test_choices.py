"""Choices of the command line are those of the library, which it does not import before a command runs."""

from typing import get_args

import pytest

from shadowfit.cli import design, options
from shadowfit.designs import criteria
from shadowfit.dynamics import discretization, requests
from shadowfit.estimation.problem import options as problem_options
from shadowfit.estimation.residuals import equations
from shadowfit.estimation.residuals.unknowns import UnknownsName
from shadowfit.estimation.uncertainty import evidence

CHOICES = [
    (options.Discretization, discretization.Discretization),
    (options.Joints, requests.Joints),
    (options.Residual, equations.Residual),
    (options.Unknowns, UnknownsName),
    (options.Correction, problem_options.Correction),
    (options.Intervals, evidence.Kind),
    (design.Criterion, criteria.Criterion),
]


@pytest.mark.parametrize(("offered", "known"), CHOICES, ids=[offered.__name__ for offered, _ in CHOICES])
def test_the_command_line_offers_what_the_library_knows(offered, known):
    assert {choice.value for choice in offered} == set(get_args(known))
