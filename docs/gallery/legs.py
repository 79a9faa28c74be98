# %% [markdown]
# # Legs with targets
#
# A biped hangs on a stand and moves its legs. Its drives tell where they are and what they were told, no torques:
# position loops with known gains are part of the model. Wanted are friction and rotors, which simulated legs lack, and
# how late the drives are.

# %%
from pathlib import Path

import numpy as np

from shadowfit import Free, Recording, export, fit, load_result, place, read_model, simulate

LEG = """
    <body name="{side}_thigh" pos="0 {y} -0.05"><joint name="{side}_hip" axis="0 1 0" damping="0.1"/>
      <inertial pos="0 0 -0.1" mass="1.6" diaginertia="0.012 0.012 0.002"/>
      <body name="{side}_shin" pos="0 0 -0.25"><joint name="{side}_knee" axis="0 1 0" damping="0.1"/>
        <inertial pos="0 0 -0.12" mass="0.5" diaginertia="0.004 0.004 0.0004"/>
      </body>
    </body>"""
legs = "".join(LEG.format(side=side, y=y) for side, y in (("left", 0.1), ("right", -0.1)))
joints = [f"{side}_{joint}" for side in ("left", "right") for joint in ("hip", "knee")]
drives = "".join(f'<position name="{joint}" joint="{joint}" kp="60" kv="1.5"/>' for joint in joints)
Path("biped.xml").write_text(
    f"""<mujoco model="biped">
  <worldbody><body name="pelvis" pos="0 0 1"><freejoint/>
    <inertial pos="0 0 0" mass="4" diaginertia="0.03 0.03 0.03"/>{legs}
  </body></worldbody>
  <actuator>{drives}</actuator>
</mujoco>
"""
)
# What the file does not say: the stand, dry friction, and the noise of the encoders.
Path("biped.toml").write_text("""
robot = "biped.xml"
weld = "pelvis"

[sensors."*_position"]
std = 3e-4
""")
mechanism = read_model("biped.toml")

# %% [markdown]
# The true legs: their knees, behind belts, rub more and have the heavier rotors; all drives are 12 ms late.

# %%
truth = {f"{joint}.viscous": 0.25 if joint.endswith("hip") else 0.35 for joint in joints}
truth |= {f"{joint}.coulomb": 0.3 if joint.endswith("hip") else 0.5 for joint in joints}
truth |= {f"{joint}.motor.shaft_inertia": 0.01 if joint.endswith("hip") else 0.02 for joint in joints}
truth |= {f"{joint}_target.delay": 0.012 for joint in joints}
true = mechanism.set(truth)
time, rng = 0.01 * np.arange(1201), np.random.default_rng(0)
targets = {
    f"{joint}_target": sum(
        0.25 * np.sin(2.0 * np.pi * rate * time + phase)
        for rate, phase in zip(rng.uniform(0.2, 1.6, 4), rng.uniform(0.0, 6.0, 4), strict=True)
    )
    for joint in joints
}
run = simulate(true, place(true), {name: values[:-1] for name, values in targets.items()}, timestep=0.01, steps=1200)
angles = {f"{joint}_position": run.readings[f"{joint}_position"] + rng.normal(0, 3e-4, len(time)) for joint in joints}
recording = Recording(time, angles | targets, name="dance")

# %%
estimate = fit(mechanism, recording, {**dict.fromkeys(truth), "*_target.delay": Free(upper=0.04)})
print(estimate.summary())

# %%
estimate.plot.machine()
estimate.plot.rollouts()

# %% [markdown]
# The numbers into a copy of the robot's file, and ranges for training in mjlab, in its own words.

# %%
estimate.save("result")
made = export(load_result("result"), "biped.xml")
print("\n".join(line.strip() for line in made.paths[0].read_text().splitlines() if "<joint" in line))
print("no place in an MJCF:", ", ".join(made.homeless))
ranges = export(load_result("result"), "biped.xml", "mjlab", ranges=0.95)
print(ranges.paths[0].read_text()[:900])
