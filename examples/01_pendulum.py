"""A pendulum from data to calibrated parameters, in a few lines.

        O hinge (friction)
         \\
          \\   theta: the encoder's reading, zero when the rod hangs
           o rod

Run: python examples/01_pendulum.py
"""

import numpy as np

from shadowfit import Recording, fit, load_model, simulate


def record(duration: float = 3.0, timestep: float = 0.01) -> Recording:
    """What an encoder with noise of a milliradian would record of a rod with unknown inertia and friction."""
    model = load_model("pendulum")
    unknown = model.mechanism.set({"pendulum.inertia.yy": 0.00382, "hinge.viscous": 4e-4})
    released = model.start.with_joints({"hinge": 2.5}, {}).state(unknown)
    run = simulate(unknown, released, timestep=timestep, steps=round(duration / timestep))
    noise = np.random.default_rng(0).normal(0.0, 1e-3, len(run))
    return Recording(np.asarray(run.time), {"theta": np.asarray(run.readings["theta"]) + noise}, name="release")


def main() -> None:
    mechanism = load_model("pendulum").mechanism
    estimate = fit(mechanism, record(), ["pendulum.inertia.yy", "hinge.viscous"])
    print(estimate.summary())
    for row in estimate.parameters:
        print(f"{row.name}: {row.start:g} -> {row.value:.5g} ± {row.std:.1g} {row.unit}")


if __name__ == "__main__":
    main()
