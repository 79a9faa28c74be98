"""What error bars mean for a simulation: machines drawn from a fit, for domain randomisation.

    recording ──fit──► estimate ──draw──► machines ──simulate──► how sure is what they do?

Run: python examples/06_possible_machines.py
"""

import numpy as np

from shadowfit import Recording, fit, load_model, place, simulate


def record(duration: float = 2.0, timestep: float = 0.01) -> Recording:
    """A short recording, with much noise, of a pendulum with unknown inertia and friction."""
    model = load_model("pendulum")
    unknown = model.mechanism.set({"pendulum.inertia.yy": 0.00382, "hinge.viscous": 4e-4})
    run = simulate(unknown, place(unknown, {"hinge": 1.0}), timestep=timestep, steps=round(duration / timestep))
    noise = np.random.default_rng(1).normal(0.0, 0.02, len(run))
    return Recording(run.time, {"theta": run.readings["theta"] + noise}, name="noisy")


def main() -> None:
    mechanism = load_model("pendulum").mechanism.set({"theta.std": 0.02})
    estimate = fit(mechanism, record(), ["pendulum.inertia.yy", "hinge.viscous"])
    print(estimate.summary())
    draws = estimate.draw(100)
    print(draws.to_polars().describe())
    ends = []
    for number in range(len(draws)):
        machine = draws.mechanism(number)
        run = simulate(machine, place(machine, {"hinge": 2.0}), timestep=0.01, steps=500)
        ends.append(float(run.readings["theta"][-1]))
    low, high = np.quantile(ends, [0.025, 0.975])
    print(f"after 5 s from another start 95 % of these machines are at {low:.3f} … {high:.3f} rad")


if __name__ == "__main__":
    main()
