"""Quanser QUBE rotary pendulum: fit two chirps, one of each sign, and predict the other eight in open loop.

Data: `furuta_qube2`, from github.com/famura/SimuRLacra (BSD-3-Clause).

Run: python studies/qube.py --data FOLDER [--out FOLDER]
"""

import study

MODEL = "qube.toml"
# A motor of some mN m under encoders of 3 mrad: the impulses are small, the weight is large, and reached in steps.
STATE_WEIGHTS = ("1e6", "1e8", "1e10")
FREE = [
    "arm.inertia.zz",
    "rod.inertia.yy",
    "motor_hinge.coulomb",
    "motor_hinge.motor.torque_constant",
    "motor_hinge.motor.back_emf",
    "motor_hinge.cable.stiffness",
    "motor_hinge.cable.quadratic",
    "motor_hinge.cable.rest",
    "swing.viscous",
    "swing.coulomb",
    "u.delay",
    "alpha.offset",
]


def main() -> None:
    data, out = study.folders("furuta_qube2")
    files = {s: [data / f"qq_chirp_10to0Hz_{s}1.5V_250Hz_10s_{i}.csv" for i in range(5)] for s in ("pos", "neg")}
    both = out / "both"
    study.run_fit(MODEL, [files["pos"][0], files["neg"][0]], FREE, both, state_weights=STATE_WEIGHTS)
    study.print_validations(study.run_validate(both, files["pos"][1:] + files["neg"][1:]))
    study.rollout_figure(out / "real-qube.png", both, [study.read(files[s][1]) for s in ("pos", "neg")])

    every = files["pos"] + files["neg"]
    singles = [study.run_fit(MODEL, [path], FREE, out / path.stem, state_weights=STATE_WEIGHTS[:1]) for path in every]
    study.print_consistency(study.consistency(singles))


if __name__ == "__main__":
    main()
