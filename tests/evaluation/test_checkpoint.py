"""What can be seen of a fit while it goes on: residuals at its iterations."""

import dataclasses
import json

import numpy as np

from shadowfit.estimation import fit
from shadowfit.evaluation.checkpoint import UNFINISHED, Checkpoint, residuals
from shadowfit.evaluation.series import compare
from shadowfit.models import load_model


def test_residuals_of_an_iteration_are_those_of_the_fit(base, recording, tmp_path):
    seen, checkpoint = [], Checkpoint(tmp_path, interval=0.0)

    def progress(iteration):
        seen.append(iteration)
        checkpoint(iteration)

    two = [recording, dataclasses.replace(recording, name="other")]
    model = load_model("pendulum").mechanism.set(base)
    estimate = fit(model, two, ("hinge.viscous",), progress=progress)
    assert all(entry.where is None for entry in estimate.log), "a log does not hold the motions of all iterations"
    first, last = residuals(*seen[-1].where)
    assert (first["name"], last["name"]) == (f"theta in {recording.name}", "theta in other")
    trajectory = estimate.trajectory(1)
    own = compare(estimate.mechanism(1), two[1], trajectory.time, trajectory.readings)["theta"].residual[:, 0]
    np.testing.assert_allclose(last["left"], own / float(model.sensors["theta"].std), rtol=1e-4, atol=1e-4)
    kept = json.loads((tmp_path / UNFINISHED).read_text())
    assert kept["residuals"] == [first, last]
