"""Stand-ins of machines whose models are wrong, simulated with equations of their own; a recording's name is its seed.

Simulated by Runge and Kutta's method, nothing of the estimator, and fitted with models that lack something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.rigs import arm, belt, bristles, decay, drive, driven_pendulum, furuta, play
from benchmarks.rigs.rig import Rig
from shadowfit.mechanism import Mechanism
from shadowfit.recordings import Recording

# Repeats of one motion have the seeds 0 and 1; seed 2 is kept for simulations.
REPEATS = (("repeats", "0", "1"),)


def _rig(
    says: str,
    mechanism: Callable[[], Mechanism],
    recorded: Callable[..., Recording],
    free: tuple[str, ...],
    *arguments: Any,
    truth: Mapping[str, float],
) -> Rig:
    def read(name: str) -> Recording:
        return recorded(*arguments, seed=int(name))

    return Rig(says, mechanism, read, free, ("0",), ("2",), REPEATS, truth)


def _belt() -> Mechanism:
    return driven_pendulum.driven_pendulum(belt.MASS, belt.LENGTH, 5e-3, 0.005, 0.02, belt.COUNTS)


def _bristles() -> Mechanism:
    return driven_pendulum.driven_pendulum(bristles.MASS, bristles.LENGTH, 0.02, 0.01, 0.05, bristles.COUNTS)


FURUTA = {
    "arm.inertia.zz": furuta.ARM,
    "base.motor.gain": furuta.GAIN,
    "rod.inertia.xx": furuta.ROD_INERTIA - furuta.ROD_MASS * furuta.ROD**2,
}
DECAYS = {
    "decay-a": "free pendulum with air drag and uneven friction that the model lacks",
    "decay-b": "free pendulum with a little of air drag and uneven friction that the model lacks, an eccentric encoder",
    "decay-c": "free pendulum with much air drag and uneven friction that the model lacks",
}
GEARS = {
    "play": "rotary pendulum with play between motor and arm, which the model has as one",
    "play-heavy-rotor": "rotary pendulum with wider play, most of the inertia in the rotor",
}
RIGS: dict[str, Rig] = {
    **{
        name: _rig(
            says,
            decay.pendulum,
            decay.swung,
            decay.PENDULUM_FREE,
            decay.DECAYS[name],
            truth={"rod.inertia.yy": decay.inertia(decay.DECAYS[name])},
        )
        for name, says in DECAYS.items()
    },
    "drive": _rig(
        "linear drive in a position loop, force read, friction larger near rest than the model's",
        drive.drive,
        drive.driven,
        drive.DRIVE_FREE,
        truth={"table.mass": drive.DRIVE_MASS},
    ),
    "geared-furuta": _rig(
        "geared rotary pendulum that rubs more at rest than the model, and is pushed about",
        furuta.furuta,
        furuta.spun,
        furuta.FURUTA_FREE,
        truth=FURUTA,
    ),
    "loaded-arm": _rig(
        "six axes in a position loop, torques read, friction that depends on load, which the model lacks",
        arm.arm,
        arm.led,
        arm.ARM_FREE,
        truth={f"joint{i}.motor.shaft_inertia": rotor for i, rotor in enumerate(arm.ARM_ROTOR.tolist(), 1)},
    ),
    "bristles": _rig(
        "driven pendulum whose friction bends before it slips (LuGre), fitted with Coulomb's",
        _bristles,
        bristles.driven,
        bristles.FREE,
        truth={"arm.inertia.yy": bristles.INERTIA},
    ),
    **{
        name: _rig(says, furuta.furuta, play.driven, furuta.FURUTA_FREE, name, truth=FURUTA)
        for name, says in GEARS.items()
    },
    "belt": _rig(
        "driven pendulum behind a soft belt, fitted as one body",
        _belt,
        belt.driven,
        belt.FREE,
        truth={"arm.mass": belt.MASS},
    ),
}
