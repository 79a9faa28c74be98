"""Which friction does a bearing have? Fit several laws to one recording and compare what they predict on another.

The recorded rod has dry friction. A model with viscous friction alone can bend the motion of one recording to fit, but
its cost is higher, its residuals are correlated, and it predicts a swing of another size badly.

Run: python examples/05_friction_models.py
"""

import numpy as np

from shadowfit import Mechanism, Options, Recording, fit, load_model, simulate, validate
from shadowfit.models.builtin import pendulum


def record(release: float, seed: int, duration: float) -> Recording:
    """A rod released from an angle [rad], with dry friction."""
    model = load_model("pendulum")
    true = model.mechanism.set({"hinge.dry": 0.0025, "hinge.viscous": 1e-4})
    start = model.start.with_joints({"hinge": release}, {}).state(true)
    run = simulate(true, start, timestep=0.01, steps=round(duration / 0.01))
    noise = np.random.default_rng(seed).normal(0.0, 1e-3, len(run))
    return Recording(np.asarray(run.time), {"theta": np.asarray(run.readings["theta"]) + noise}, name=f"from {release}")


def compare(duration: float = 4.0) -> dict[str, tuple[float, float]]:
    """Name of the law → cost of the fit, and cross-validation cost."""
    wide, narrow = record(2.0, 5, duration), record(0.8, 6, duration)
    laws: dict[str, tuple[Mechanism, list[str]]] = {
        "viscous": (pendulum(friction=False), ["hinge.viscous"]),
        "viscous and dry": (pendulum(), ["hinge.viscous", "hinge.dry"]),
    }
    found = {}
    for name, (mechanism, free) in laws.items():
        # A heavy weight on the dynamics leaves little room to explain wrong friction by unknown pushes.
        options = Options(state_weight=1e4)
        estimate = fit(mechanism, wide, free, options=options)
        (unseen,) = validate(estimate.mechanism(), narrow, options)
        found[name] = (estimate.cost, unseen.cost)
        print(f"{name}: cost {estimate.cost:.3g}, on the other recording {unseen.cost:.3g}")
        print(estimate.summary())
    return found


if __name__ == "__main__":
    compare()
