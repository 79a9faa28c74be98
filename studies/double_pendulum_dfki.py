"""Driven double pendulum: fit two open-loop runs, predict a swing-up, and compare base parameters with published ones.

Data: `double_pendulum_dfki`, from github.com/dfki-ric-underactuated-lab/double_pendulum (BSD-3-Clause). Its time stamps
are uneven.

Run: python studies/double_pendulum_dfki.py --data FOLDER [--out FOLDER]
"""

import study

MODEL = "double_pendulum_dfki.toml"
FREE = [
    "link1.com.z",
    "link1.inertia.yy",
    "link2.com.z",
    "link2.inertia.yy",
    "shoulder.viscous",
    "shoulder.coulomb",
    "elbow.viscous",
    "elbow.coulomb",
]
TORQUES = {"tau1": "tau_cmd1", "tau2": "tau_cmd2"}
CHANNELS = [part for name, column in TORQUES.items() for part in ("--channel", f"{name}={column}")]
M1, M2, L1, ROTOR = 0.55938, 0.60435, 0.3, 7.659e-5
PUBLISHED = {"I1 + m2 l1² + 37 Ir": 0.1107, "I2": 0.0239, "m2 r2": 0.1111, "m1 r1 + m2 l1": 0.349}


def main() -> None:
    data, out = study.folders("double_pendulum_dfki")
    runs = [data / "A0_traj00.csv", data / "A0_traj04.csv"]
    result = study.run_fit(MODEL, runs, FREE, out / "sines", *CHANNELS)
    found = {name: row["value"] for name, row in result["parameters"].items()}
    r1, r2 = -found["link1.com.z"], -found["link2.com.z"]
    base = {
        "I1 + m2 l1² + 37 Ir": found["link1.inertia.yy"] + M1 * r1**2 + M2 * L1**2 + 37.0 * ROTOR,
        "I2": found["link2.inertia.yy"] + M2 * r2**2,
        "m2 r2": M2 * r2,
        "m1 r1 + m2 l1": M1 * r1 + M2 * L1,
    }
    for name, value in base.items():
        print(f"{name}: {value:.5g}, published {PUBLISHED[name]:.5g} ({100 * (value / PUBLISHED[name] - 1):+.1f} %)")
    swing_up = data / "A0_traj11.csv"
    study.print_validations(study.run_validate(out / "sines", [swing_up], *CHANNELS))
    study.rollout_figure(out / "real-double-dfki.png", out / "sines", [study.read(swing_up, **TORQUES)])


if __name__ == "__main__":
    main()
