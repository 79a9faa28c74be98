# %% [markdown]
# # A servo bench
#
# A hobby servo swings a weighed arm. Only what it was told and where it went is recorded: its position loop is part of
# the model. The weight of the arm says how large torques are, so that gains and rotor follow in SI units.

# %%
import numpy as np

from shadowfit import Free, Recording, fit, place, read_model, simulate

BENCH = """
name = "bench"

[bodies.arm]
mass = 0.12                     # kg, weighed
inertia = { xx = 1e-4, yy = 1e-4, zz = 1e-6 }

[joints.servo]
type = "hinge"
parent = "world"
child = "arm"
axis = [0.0, 1.0, 0.0]
child_point = [0.0, 0.0, 0.08]  # m
friction = "coulomb"
coulomb = 0.01                  # N m

[joints.servo.loop]
type = "position"
input = "target"
kp = 3.0                        # N m/rad
kd = 0.05                       # N m s/rad
shaft_inertia = 1e-3            # kg m²

[sensors.angle]
type = "joint_position"
joint = "servo"
std = 1e-3                      # rad

[inputs.target]
unit = "rad"
"""
with open("bench.toml", "w") as file:
    file.write(BENCH)
mechanism = read_model("bench.toml")

# %% [markdown]
# The true servo: softer, with a rotor four times as heavy, and 24 ms late.

# %%
truth = {"servo.loop.kp": 1.9, "servo.loop.kd": 0.08, "servo.loop.shaft_inertia": 4e-3, "servo.coulomb": 0.03}
truth["target.delay"] = 0.024
true = mechanism.set(truth)
time = 0.01 * np.arange(1001)
target = 0.9 * np.sin(2.0 * np.pi * (0.2 + 0.12 * time) * time) + 0.3 * np.sign(np.sin(2.3 * time))
run = simulate(true, place(true), {"target": target[:-1]}, timestep=0.01, steps=1000)
angle = run.readings["angle"] + np.random.default_rng(0).normal(0.0, 1e-3, len(time))
recording = Recording(time, {"angle": angle, "target": target}, name="sweep")

# %% [markdown]
# All five are free; the delay within 50 ms.

# %%
estimate = fit(mechanism, recording, {**dict.fromkeys(truth), "target.delay": Free(upper=0.05)})
print(estimate.summary())

# %%
estimate.plot.machine()
estimate.plot.fit()
estimate.plot.forces("speed")

# %% [markdown]
# How sure is that? Each piece of the recording by itself, and machines drawn from all of it.

# %%
estimate.plot.forest()
print(estimate.draw(500).to_polars().describe())
