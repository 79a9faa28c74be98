"""Thirteen parameters of a Furuta pendulum from its swing-up, the result on disk, and a second recording to check it.

    ====O========== arm ==========O--> hinge2
        |                         |
     hinge1, motor                | rod

The recordings come from a twin: an ordinary differential equation with known parameters, not the simulator itself.

Run: python examples/02_furuta.py [FOLDER]
"""

import sys
from pathlib import Path

from shadowfit import fit, load_result, read_model, validate
from shadowfit.models.twins import furuta_swing_up


def main(folder: Path = Path("furuta_result"), duration: float = 12.0) -> None:
    twin = furuta_swing_up(duration)
    mechanism = read_model(twin.model).set(twin.settings)
    estimate = fit(mechanism, twin.recording, twin.free)
    print(estimate.summary())
    for row in estimate.parameters:
        if row.name in twin.truth:
            print(f"{row.name}: {row.value:.5g}, in truth {twin.truth[row.name]:.5g} {row.unit}")

    estimate.save(folder, truth=twin.truth)
    saved = load_result(folder)
    print(f"Open {saved.report()} in a browser")

    # Another seed is another recording: the controller's dither and the encoders' zeros differ.
    (found,) = validate(saved, furuta_swing_up(duration / 2, seed=8).recording)
    for name, sensor in found.sensors.items():
        ahead = ", ".join(f"{steps} steps {error:.2g}" for steps, error in sensor.prediction_rmse.items())
        print(f"{name}: prediction error {ahead} rad; rollout within 5 % for {sensor.rollout_horizon:.2f} s")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
