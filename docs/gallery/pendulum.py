# %% [markdown]
# # A pendulum from a CSV file
#
# A rod swings about a hinge, and a logger writes its angle: milliseconds and degrees, as loggers do. Wanted are its
# moment of inertia and its friction. The recording is made here, by a pendulum whose numbers we know.

# %%
from pathlib import Path

import numpy as np

from shadowfit import check, fit, load_model, place, read_recording, simulate, validate

model = load_model("pendulum")
truth = {"pendulum.inertia.yy": 0.00382, "hinge.viscous": 4e-4, "hinge.dry": 0.0025}


def log(path, angle, seed):
    """What the logger writes of a swing from an angle."""
    true = model.mechanism.set(truth)
    run = simulate(true, place(true, {"hinge": angle}), timestep=0.01, steps=800)
    theta = np.degrees(run.readings["theta"]) + np.random.default_rng(seed).normal(0.0, 0.06, len(run))
    rows = [f"{1e3 * t:.0f};{degrees:.2f}" for t, degrees in zip(run.time, theta, strict=True)]
    Path(path).write_text("\n".join(["time [ms];angle [deg]", *rows]))


log("swing.csv", 2.5, seed=0)
log("another.csv", 1.2, seed=1)

# %% [markdown]
# Which column is which sensor is said once; units are read from the head of the columns. `check` looks at model and
# recording before any fit does.

# %%
recording = read_recording("swing.csv", channels={"theta": "angle"})
print(recording.units, len(recording.time), "samples")
print("\n".join(notice.text for notice in check(model.mechanism, recording, list(truth)).notices))

# %%
estimate = fit(model.mechanism, recording, list(truth))
print(estimate.summary())

# %% [markdown]
# The machine as the fit sees it, the fit over the samples, and what it leaves of them.

# %%
estimate.plot.machine()
estimate.plot.fit()
estimate.plot.residuals()

# %% [markdown]
# Does the model hold for a swing that it has not seen? Simulations of possible machines should enclose 95 % of it.

# %%
(found,) = validate(estimate, read_recording("another.csv", channels={"theta": "angle"}))
theta = found.sensors["theta"]
print(f"simulated for {theta.rollout_horizon:.1f} s within 5 % of its range")
print(f"{100 * theta.enclosed:.0f} % of the samples lie between simulations of draws")

# %%
print(estimate.draw(200).to_polars().describe())
estimate.plot.pairs()
