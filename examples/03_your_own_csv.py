"""Your own mechanism and your own recording: a model file, a CSV file in degrees, and a calibrated model file back.

    |-- spring --[ slider, mass unknown ]-->  x        (here: a cart between a wall and a spring)

Run: python examples/03_your_own_csv.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np

from shadowfit import Free, fit, load_model, read_recording, update_model

MODEL = """
name = "cart"

[bodies.cart]
mass = 1.0                       # kg, to be found
inertia = { xx = 1e-2, yy = 1e-2, zz = 1e-2 }

[joints.rail]
type = "slider"
parent = "world"
child = "cart"
axis = [1.0, 0.0, 0.0]
viscous = 0.1                    # N s/m, to be found

[joints.rail.spring]
type = "spring"
stiffness = 40.0                 # N/m, known from its data sheet

[sensors.x]
type = "joint_position"
joint = "rail"
std = 5e-4                       # m
"""


def write_recording(path: Path) -> None:
    """A measured decay, as a logger writes it: milliseconds and millimetres."""
    mass, viscous, stiffness = 1.3, 0.8, 40.0
    time = 0.01 * np.arange(400)
    decay, frequency = viscous / (2 * mass), np.sqrt(stiffness / mass - (viscous / (2 * mass)) ** 2)
    place = 0.1 * np.exp(-decay * time) * (np.cos(frequency * time) + decay / frequency * np.sin(frequency * time))
    noisy = place + np.random.default_rng(3).normal(0.0, 5e-4, len(time))
    rows = [f"{1e3 * t:.0f},{1e3 * x:.3f}" for t, x in zip(time, noisy, strict=True)]
    path.write_text("\n".join(["Time (ms),position [mm]", *rows]))


def main(folder: Path = Path("cart")) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cart.toml").write_text(MODEL)
    write_recording(folder / "decay.csv")

    model = load_model(folder / "cart.toml")
    recording = read_recording(folder / "decay.csv", channels={"x": "position"})
    estimate = fit(model.mechanism, recording, {"cart.mass": Free(lower=0.1, upper=10.0), "rail.viscous": None})
    print(estimate.summary())

    (folder / "calibrated.toml").write_text(update_model(model.text, estimate.values))
    print(f"Calibrated model in {folder / 'calibrated.toml'}, comments kept")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
