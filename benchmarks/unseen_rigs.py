"""Stand-ins of machines whose models are wrong: do plain defaults find them, and do error bars hold?

Simulated with equations of their own (Runge–Kutta, nothing of the estimator) and fitted with models that lack
something, as a new user would: no option, no number that was looked at before.

* ``decay a, b, c``: free pendulums with air drag, and friction that varies over a turn; fitted with viscous and Coulomb
  friction. The encoder of *b* is eccentric.
* ``drive``: a linear drive in a position loop, its force read with noise; fitted with steps of 1 and 10 ms.
* ``furuta``: a geared rotary pendulum whose base rubs more at rest and has play, fitted with viscous and Coulomb
  friction.
* ``arm``: six axes in a position loop, friction that saturates with speed and depends on load, torques with noise.
* ``bristles``: a driven pendulum whose friction bends before it slips (LuGre), fitted with Coulomb's.
* ``play``: the rotary pendulum with a gap between motor and arm, which the model has as one; the same with most of the
  inertia in the rotor, and a wider gap.
* ``belt``: a driven pendulum behind a soft belt, fitted as one body.

For each: estimates with error bars beside an independent fit (output error, or least squares on inverse dynamics),
|difference|/combined standard deviation of halves, of time-steps, of repeats, and open-loop rollouts.

    python -m benchmarks.unseen_rigs [--rigs "decay a" drive ...]
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable

import numpy as np

from benchmarks.rigs import arm, belt, bristles, decay, drive, furuta, play
from benchmarks.rigs.comparison import Differences
from shadowfit.runtime import start_jax

STUDIES: dict[str, Callable[[], Differences]] = {
    **{name: functools.partial(decay.study, name) for name in decay.DECAYS},
    "drive": drive.study,
    "furuta": furuta.study,
    "arm": arm.study,
    "bristles": bristles.study,
    **{name: functools.partial(play.study, name) for name in play.GEARS},
    "belt": belt.study,
}


def main() -> None:
    """Run all rigs and print what they say together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rigs", nargs="*", default=list(STUDIES), choices=list(STUDIES), help="some of the rigs only")
    start_jax()
    rows = []
    for name in parser.parse_args().rigs:
        own = STUDIES[name]()
        for kind, parameter, value in own:
            print(f"  {name:18} {kind:10} {parameter:30} {value:.2f}", flush=True)
        rows += own
    values = np.array([value for *_, value in rows])
    print(f"|difference|/std: n = {len(values)}, median {np.median(values):.2f}, below 3: {np.mean(values < 3.0):.0%}")


if __name__ == "__main__":
    main()
