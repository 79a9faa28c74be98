"""What was settled without being asked for is said with its reason."""

from types import SimpleNamespace

import numpy as np
import pytest

from estimation.scenes import spring_slider, twin, with_joint
from shadowfit.estimation import Options, fit
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.evaluation.choices import choices
from shadowfit.mechanism import Coulomb, Sphere, touch
from shadowfit.mechanism.leaves import Parts
from shadowfit.recordings import Recording


@pytest.fixture(scope="module")
def recording():
    return twin(spring_slider(), {"rail": 0.3}, 120, timestep=0.02, noise=1e-3)


def test_every_choice_has_a_reason(recording):
    made = choices(fit(spring_slider(), recording, {"rail.spring.stiffness": 8.0}))
    told = {choice.what: choice.chosen for choice in made}
    assert told["time-step"] == "20 ms"
    assert told["unknowns"] == "joint coordinates"
    assert told["equations of motion"] == "have their most likely errors"
    assert all(choice.reason for choice in made)


def test_given_weights_are_no_choice(recording):
    options = Options(state_weight=1e2, correction="none")
    made = choices(fit(spring_slider(), recording, {"rail.spring.stiffness": 8.0}, options=options))
    assert [choice.what for choice in made] == ["time-step", "unknowns", "errors of the discretisation"]
    assert made[-1].chosen == "left in"


def unknowns(mechanism, **options):
    """What is told of the unknowns of a fit with given weights."""
    time = 0.01 * np.arange(20)
    recording = Recording(time, {"x": 0.1 * np.sin(10.0 * time)})
    problem = build_problem(mechanism, [recording], parameter_set(mechanism, ()), Options(state_weight=1e2, **options))
    return choices(SimpleNamespace(problem=problem, noise_choice=None))[1]


def test_poses_have_their_own_reason():
    sliding = with_joint(spring_slider(), "rail", friction=Coulomb(dry=0.1))
    touching = sliding.having(contacts=Parts({"floor": touch(Sphere(0.1), "block", plane_point=(0.0, 0.0, -0.5))}))
    told = unknowns(touching)
    assert told.chosen == "poses of the bodies"
    assert "'rail' rubs in proportion to its load, which contact 'floor' changes" in told.reason
    asked = unknowns(spring_slider(), unknowns="configuration")
    assert asked.chosen == "poses of the bodies"
    assert "asked for" in asked.reason
