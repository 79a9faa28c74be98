"""Quanser cart-pole: fit two chirps, one of each sign, and predict the other eight in open loop.

In all ten recordings the cart stands still, whatever the voltage says, until 0.5 s: the motor is switched on only then,
and the recordings are used from there. The cart's rail is not level or the amplifier has an offset (the cart drifts the
same way in the chirps of both signs): the offset of the voltage is free. The last sample of theta is stray.

Data: `cartpole_quanser`, from github.com/famura/SimuRLacra (BSD-3-Clause).

Run: python studies/cartpole.py --data FOLDER [--out FOLDER]
"""

import study

MODEL = "cartpole.toml"
FREE = [
    "cart.mass",
    "pole.inertia.yy",
    "rail.viscous",
    "rail.coulomb",
    "rail.motor.torque_constant",
    "pivot.viscous",
    "pivot.coulomb",
    "u.delay",
    "u.offset",
    "theta.offset",
]
BEGIN, END = 0.51, 5.497
WINDOW = ("--from", str(BEGIN), "--to", str(END))
# The cart sticks and slips on its rail, which the model only roughly has; the pole is as good as free of friction. So
# the errors of the cart's equation along the rail may be much larger than all others.
LOOSE = ("--impulse-variance", "cart.x=1e3")
STATE_WEIGHTS = ("1e5", "1e7")


def main() -> None:
    data, out = study.folders("cartpole_quanser")
    files = {s: [data / f"qcp_chirp_3to0Hz_{s}3.5V_250Hz_{i}.csv" for i in range(5)] for s in ("pos", "neg")}
    both = out / "both"
    study.run_fit(MODEL, [files["pos"][0], files["neg"][0]], FREE, both, *WINDOW, *LOOSE, state_weights=STATE_WEIGHTS)
    study.print_validations(study.run_validate(both, files["pos"][1:] + files["neg"][1:], *WINDOW))
    held_out = [study.read(files[s][1], BEGIN, END) for s in ("pos", "neg")]
    study.rollout_figure(out / "real-cartpole.png", both, held_out)


if __name__ == "__main__":
    main()
