# %% [markdown]
# # A Furuta pendulum
#
# A motor turns an arm, a rod swings at its end, and a controller has swung it up. The recording is of a twin: ordinary
# differential equations with known numbers, not the simulator that is fitted.

# %%
from shadowfit import fit, read_model, validate
from shadowfit.models.twins import furuta_swing_up

twin = furuta_swing_up(8.0)
truth = twin.truth
mechanism = read_model(twin.model).set(twin.settings)
print(twin.recording.channels.keys(), len(twin.recording.time), "samples")

# %% [markdown]
# Motor gain, inertias, friction and the tilt of the stand are free. The arm never turns about its own x and y axes, and
# gravity turned about itself is the same: no recording tells these three, and the fit says so.

# %%
estimate = fit(mechanism, twin.recording, twin.free)
print(estimate.summary())

# %%
estimate.plot.machine()
estimate.plot.fit()

# %% [markdown]
# Forces that the model does not explain, over the speed of each joint: friction that were left out would show here.

# %%
estimate.plot.forces("speed")

# %% [markdown]
# What is known, beside the truth; and a swing-up that the fit has not seen.

# %%
known = {row.name: row for row in estimate.parameters}
for name, value in truth.items():
    row = known[name]
    print(f"{name:22} {row.value:11.4g} ± {row.std:.1g}   truth {value:.4g} {row.unit}")

# %%
(found,) = validate(estimate, furuta_swing_up(4.0, seed=8).recording)
for name, sensor in found.sensors.items():
    steps = ", ".join(f"{count} steps {error:.2g}" for count, error in sensor.prediction_rmse.items())
    print(f"{name}: simulations are off after {steps} rad")
