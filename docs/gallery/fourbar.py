# %% [markdown]
# # A closed loop
#
# Crank, coupler and rocker of a four-bar linkage: the last joint closes a loop, so that one angle decides all. A motor
# turns the crank. Gravity and the motor's torque say how heavy the rods are, as far as one moving angle can tell.

# %%
import numpy as np

from shadowfit import Recording, fit, load_model, place, read_model, simulate

MOTOR = """
[joints.ground_crank.motor]
type = "torque"

[inputs.u]
unit = "N m"
"""
with open("linkage.toml", "w") as file:
    file.write(load_model("fourbar").text.replace("[state]", f"{MOTOR}\n[state]"))
mechanism = read_model("linkage.toml")

# %% [markdown]
# The true linkage has a heavier coupler and rocker, and friction at the crank.

# %%
truth = {"coupler.mass": 0.35, "rocker.mass": 0.3, "ground_crank.viscous": 0.012}
true = mechanism.set(truth)
time = 0.005 * np.arange(1201)
torque = 0.4 * np.sin(2.0 * np.pi * (0.3 + 0.1 * time) * time)
run = simulate(true, place(true, {"ground_crank": -1.0}), {"u": torque[:-1]}, timestep=0.005, steps=1200)
noise = np.random.default_rng(0).normal(0.0, 1e-3, (2, len(time)))
angles = {name: run.readings[name] + own for name, own in zip(("theta_crank", "theta_rocker"), noise, strict=True)}
recording = Recording(time, {**angles, "u": torque}, name="chirp")

# %%
estimate = fit(mechanism, recording, list(truth))
print(estimate.summary())

# %%
estimate.plot.machine()
estimate.plot.fit()
estimate.plot.rollouts()
