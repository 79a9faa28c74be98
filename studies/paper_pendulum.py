"""The paper's pendulum study on a real pendulum: viscous, dry and Stribeck friction, series by series.

Its five series are pieces of ten seconds of one free decay, so that they differ in amplitude, which the paper's did
not: a friction law that is right at all amplitudes shows in the same parameters from all of them. Data:
`pendulum_single_uw`, from github.com/dynamicslab/MultiArm-Pendulum (MIT).

Run: python studies/paper_pendulum.py --data FOLDER [--out FOLDER]
"""

import subprocess
import sys

import study

from shadowfit.evaluation.columns import write_csv

SERIES, DURATION = 5, 10.0  # s


def main() -> None:
    data, out = study.folders("pendulum_single_uw")
    swing = study.read(data / "single_free_swing_500Hz.csv")
    for i in range(SERIES):
        own = (swing.time >= i * DURATION) & (swing.time < (i + 1) * DURATION)
        columns = {"time [s]": swing.time[own] - i * DURATION, "theta [rad]": swing.channel("theta1")[own]}
        write_csv(out / "series" / f"pendulum-{i}.csv", columns)
    model = study.HERE / "paper_pendulum.toml"
    folder = out.resolve()
    given = ("--recordings", folder / "series", "--model", model.resolve(), "--out", folder / "paper")
    command = [sys.executable, "-m", "paper", "pendulum", *map(str, given)]
    sys.exit(subprocess.run(command, cwd=study.HERE.resolve().parent, check=False).returncode)


if __name__ == "__main__":
    main()
