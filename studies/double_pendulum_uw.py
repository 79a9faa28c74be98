"""Double pendulum, free decay with a chaotic start: fit the first 20 s, predict the last 20 s.

Data: `pendulum_double_uw`, from github.com/dynamicslab/MultiArm-Pendulum (MIT).

Run: python studies/double_pendulum_uw.py --data FOLDER [--out FOLDER]
"""

import study

MODEL = "double_pendulum_uw.toml"
FREE = [
    "link1.com.z",
    "link1.inertia.yy",
    "link2.inertia.yy",
    "shoulder.viscous",
    "shoulder.coulomb",
    "shoulder.drag.coefficient",
    "elbow.viscous",
    "elbow.coulomb",
]
FITTED, HELD_OUT = 20.0, 60.0  # s: the fit ends, the validation begins


def main() -> None:
    data, out = study.folders("pendulum_double_uw")
    swing = data / "double_free_swing_500Hz.csv"
    found = study.run_fit(MODEL, [swing], FREE, out / "start", "--to", str(FITTED))["parameters"]
    com = found["link1.com.z"]["value"]
    base = {
        "J1 [kg m²]": found["link1.inertia.yy"]["value"] + 0.093844 * com**2 + 0.137596 * 0.172719**2,
        "J2 [kg m²]": found["link2.inertia.yy"]["value"] + 0.137596 * 0.116779**2,
        "m1 a1 + m2 L1 [kg m]": -0.093844 * com + 0.137596 * 0.172719,
    }
    published = (
        4.3753e-4 + 0.093844 * 0.108565**2 + 0.137596 * 0.172719**2,
        1.26883e-3 + 0.137596 * 0.116779**2,
        0.093844 * 0.108565 + 0.137596 * 0.172719,
    )
    for (name, value), other in zip(base.items(), published, strict=True):
        print(f"{name}: {value:.5g}, published {other:.5g} ({100 * (value / other - 1):+.1f} %)")
    study.print_validations(study.run_validate(out / "start", [swing], "--from", str(HELD_OUT)))
    study.rollout_figure(out / "real-double-uw.png", out / "start", [study.read(swing, HELD_OUT)])


if __name__ == "__main__":
    main()
