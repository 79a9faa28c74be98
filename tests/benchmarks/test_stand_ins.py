"""Stand-ins of machines whose models are wrong, with plain defaults: what their error bars have to hold."""

import numpy as np
import pytest

from benchmarks.rigs import arm, furuta, play
from shadowfit.estimation import fit


@pytest.mark.slow
def test_noise_of_an_arms_encoders_is_not_taken_for_forces():
    """From far levels Newton's step goes past the likely ones, at which rotors are found."""
    estimate = fit(arm.arm(), arm.led(1), list(arm.ARM_FREE))
    assert np.all(np.abs(np.log(estimate.noise_choice.sensor_ratio)) < np.log(1.5))
    rotors = [row for row in estimate.parameters if row.name.endswith("shaft_inertia")]
    for row, truth in zip(rotors, arm.ARM_ROTOR, strict=True):
        assert abs(row.value - truth) < 3.0 * row.std < 0.25 * truth


@pytest.mark.slow
def test_bars_of_a_machine_with_much_play_are_no_rounding():
    estimate = fit(furuta.furuta(), play.driven("play-heavy-rotor"), list(furuta.FURUTA_FREE))
    assert estimate.evidence.settled
    found = {row.name: row for row in estimate.parameters}
    for name, truth in (("arm.inertia.zz", furuta.ARM), ("base.motor.gain", furuta.GAIN)):
        assert abs(found[name].value - truth) < 3.0 * found[name].std
