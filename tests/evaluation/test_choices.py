"""What was settled without being asked for is said with its reason."""

import pytest

from estimation.scenes import spring_slider, twin
from shadowfit.estimation import Options, fit
from shadowfit.evaluation.choices import choices


@pytest.fixture(scope="module")
def recording():
    return twin(spring_slider(), {"rail": 0.3}, 120, timestep=0.02, noise=1e-3)


def test_every_choice_has_a_reason(recording):
    made = choices(fit(spring_slider(), recording, {"rail.spring.stiffness": 8.0}))
    told = {choice.what: choice.chosen for choice in made}
    assert told["time-step"] == "20 ms"
    assert told["unknowns"] == "joint coordinates"
    assert told["weight added to the equations of motion"] == "none"
    assert all(choice.reason for choice in made)


def test_given_weights_are_no_choice(recording):
    options = Options(state_weight=1e2, correction="none")
    made = choices(fit(spring_slider(), recording, {"rail.spring.stiffness": 8.0}, options=options))
    assert [choice.what for choice in made] == ["time-step", "unknowns", "errors of the discretisation"]
    assert made[-1].chosen == "left in"
