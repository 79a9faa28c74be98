# %% [markdown]
# # A controller tuned on possible machines
#
# A pulse of a motor throws a pendulum up, where a loop with little torque catches it. Too weak a pulse and it falls
# back, too strong a one and it shoots over. Who tunes in one calibrated simulator finds the weakest pulse that suffices
# there, and many a machine that is known no better falls back. Who tunes on draws of the same fit finds the
# weakest that suffices for 95 % of the machines that the recording leaves possible.

# %%
from pathlib import Path

import mujoco
import numpy as np
from matplotlib import pyplot
from mujoco import rollout

from shadowfit import Recording, export, fit, load_result, place, read_model, simulate

BENCH = """<mujoco model="bench">
  <option timestep="0.005" integrator="implicitfast"/>
  <worldbody><body name="rod"><joint name="hinge" axis="0 1 0" damping="{viscous}" frictionloss="{dry}"/>
    <inertial pos="0 0 -0.15" mass="0.2" diaginertia="0.0016 {inertia} 0.0004"/>
  </body></worldbody>
  <actuator><motor joint="hinge"/></actuator>
</mujoco>
"""
Path("bench.xml").write_text(BENCH.format(viscous=0.004, dry=0.002, inertia=0.0016))
Path("bench.toml").write_text('robot = "bench.xml"\n[sensors.hinge_position]\nstd = 0.06\n')
mechanism = read_model("bench.toml")
truth = {"rod.inertia.yy": 0.0018, "hinge.viscous": 0.006, "hinge.coulomb": 0.008}

# %% [markdown]
# A bench is known from three seconds of a bad encoder.

# %%
time = 0.02 * np.arange(151)


def recorded(seed):
    """A short recording of the true machine."""
    true = mechanism.set(truth)
    torque = 0.15 * np.sin(2.0 * np.pi * 0.8 * time) + 0.1 * np.sin(2.0 * np.pi * 1.9 * time)
    run = simulate(true, place(true), {"hinge_effort": torque[:-1]}, timestep=0.02, steps=150)
    angle = run.readings["hinge_position"] + np.random.default_rng(seed).normal(0.0, 0.06, len(time))
    return Recording(time, {"hinge_position": angle, "hinge_effort": torque}, name=f"bench {seed}")


estimate = fit(mechanism, recorded(0), list(truth))
print(estimate.summary())
estimate.plot.machine()
estimate.plot.rollouts()
estimate.plot.pairs()

# %% [markdown]
# The controller in MuJoCo: a pulse of 0.25 s, and a loop with at most 0.08 N m that pulls upwards all the time.

# %%
CATCH = '<position joint="hinge" kp="0.9" kv="0.12" forcerange="-0.08 0.08"/></actuator>'
PULSES = np.arange(0.314, 0.340, 0.0005)  # N m
STEPS = 400


def with_catch(bench):
    """A bench with the loop beside its motor."""
    return mujoco.MjModel.from_xml_string(bench.replace("</actuator>", CATCH))


def caught(machines):
    """Machine by pulse: is it up after 2 s?"""
    control = np.zeros((len(PULSES), STEPS, 2))
    control[:, :50, 0] = PULSES[:, None]
    control[:, :, 1] = np.pi
    up = []
    for machine in machines:
        data = mujoco.MjData(machine)
        start = np.zeros(mujoco.mj_stateSize(machine, mujoco.mjtState.mjSTATE_FULLPHYSICS))
        states, _ = rollout.rollout(machine, data, start, control)
        up.append(np.abs(states[:, -1, 1] - np.pi) < 0.2)
    return np.array(up)


# %% [markdown]
# Twelve benches, each with a recording of its own of the same machine. Tuned in the calibrated simulator, and on twenty
# draws of the same fit: `export` writes a module that puts either into a model of MuJoCo.

# %%
plain = with_catch(Path("bench.xml").read_text())
(truly,) = caught([with_catch(BENCH.format(viscous=0.006, dry=0.008, inertia=0.0018))])
chosen = {"calibrated": [], "draws": []}
for seed in range(12):
    fit(mechanism, recorded(seed), list(truth)).save("result")
    for tuner, draws in (("calibrated", 0), ("draws", 20)):
        made, module = export(load_result("result"), "bench.xml", "mjx", draws=draws, replace=True), {}
        exec(made.paths[0].read_text(), module)
        share = caught([module["applied"](plain, number) for number in range(module["COUNT"])]).mean(axis=0)
        chosen[tuner].append(int(np.argmax(share >= 0.95)))
up = {tuner: int(np.sum(truly[places])) for tuner, places in chosen.items()}
for tuner, places in chosen.items():
    print(f"{tuner:10}: {up[tuner]:2} of {len(places)} true machines up; pulses of {PULSES[places].mean():.4f} N m")

# %%
figure, axes = pyplot.subplots(figsize=(7, 2.2), layout="constrained")
axes.axvspan(PULSES[truly].min(), PULSES.max(), color="0.9", label="the true machine is up")
for height, (tuner, places) in enumerate(chosen.items()):
    axes.plot(PULSES[places], np.full(len(places), height), "o", alpha=0.5, label=f"tuned on {tuner}")
axes.set_xlabel("pulse [N m]")
axes.set_yticks([])
axes.legend()
