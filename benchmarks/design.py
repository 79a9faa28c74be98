"""Designed motions against the usual ones, and whether promised error bars hold.

    python -m benchmarks.design compare [MACHINE...]      designed, chirp, random, Fourier by hand: worst error bars
    python -m benchmarks.design promise [MACHINE...]      scatter of simulated and fitted seeds over the promise
                               [--defaults] [--seeds N]   with levels of the noise that fits find by themselves
    python -m benchmarks.design figures                   docs/figures/design-*.png, of the cart-pole

The six-axis arm is the UR10 among the recordings (SHADOWFIT_DATA).
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from shadowfit.designs import Design, DesignSettings, Limits, design
from shadowfit.designs.criteria import in_words
from shadowfit.designs.drives import JointMotion
from shadowfit.designs.experiment import at_rest, experiment
from shadowfit.designs.figures import growth_figure, motion_figure
from shadowfit.designs.led import led
from shadowfit.designs.limits import InputLimits, JointLimits
from shadowfit.dynamics import observe
from shadowfit.dynamics.simulate import simulate
from shadowfit.dynamics.state import State
from shadowfit.estimation import Options, fit
from shadowfit.geometry import Pose
from shadowfit.mechanism import Body, Coulomb, Input, JointPosition, Mechanism, Spring, TorqueMotor, hinge
from shadowfit.mechanism.leaves import Parts
from shadowfit.models import Start, read_model
from shadowfit.models.load import robot_model
from shadowfit.models.robots.read import Reading, read_robot
from shadowfit.recordings import Recording
from shadowfit.runtime import start_jax

# Steps of the simulation in a sample, where promises are put to the test.
FINER = 16
FIGURES = Path("docs/figures")


@dataclasses.dataclass(frozen=True)
class Case:
    """A machine, what is wished of it, and what it may do."""

    mechanism: Mechanism
    free: tuple[str, ...]
    limits: Limits
    settings: DesignSettings
    start: Start = dataclasses.field(default_factory=Start)

    def designed(self) -> Design:
        """The design of this case."""
        return design(self.mechanism, self.free, start=self.start, limits=self.limits, settings=self.settings)


def furuta() -> Case:
    """Voltage on the arm, two radians of room; the rod is passive."""
    free = (
        "hinge1.motor.gain",
        "arm.inertia.zz",
        "pendulum.inertia.yy",
        "pendulum.inertia.zz",
        "hinge1.viscous",
        "hinge2.viscous",
        "hinge1.dry",
        "hinge2.dry",
    )
    limits = Limits({"hinge1": JointLimits((-2.0, 2.0))}, {"u": InputLimits((-8.0, 8.0))})
    truth = {"hinge1.viscous": 9e-4, "hinge2.viscous": 1e-4, "hinge1.dry": 6e-4, "hinge2.dry": 2e-4}
    return Case(read_model("furuta").set(truth), free, limits, DesignSettings(duration=10.0))


def cartpole() -> Case:
    """A rail of half a metre."""
    free = ("cart.mass", "pole.mass", "pole.inertia.yy", "rail.viscous", "pivot.viscous")
    limits = Limits({"rail": JointLimits((-0.25, 0.25))}, {"u": InputLimits((-5.0, 5.0))})
    return Case(read_model("cartpole"), free, limits, DesignSettings(duration=10.0))


def link(parent: str, child: str, motor: str) -> dict[str, object]:
    """A hinge with friction and a motor."""
    return {
        "parent": parent,
        "child": child,
        "axis": (0.0, 1.0, 0.0),
        "parent_point": (0.0, 0.0, 0.0) if parent == "world" else (0.0, 0.0, -0.4),
        "viscous": 0.1,
        "friction": Coulomb(coulomb=0.2),
        "laws": {"motor": TorqueMotor(1.0, 0.01, input=motor)},
        "compliance": 1e-9,
    }


def two_link() -> Case:
    """Two links in a vertical plane, a motor at each joint."""
    bodies = {
        "upper": Body(2.0, np.diag([0.03, 0.03, 0.004]), com=(0.0, 0.0, -0.2)),
        "lower": Body(1.2, np.diag([0.02, 0.02, 0.002]), com=(0.0, 0.0, -0.15)),
    }
    joints = {"shoulder": hinge(**link("world", "upper", "u1")), "elbow": hinge(**link("upper", "lower", "u2"))}
    mechanism = Mechanism(
        bodies,
        joints,
        sensors={f"q{i}": JointPosition(joint=name, std=1e-4) for i, name in enumerate(joints, 1)},
        inputs={"u1": Input(unit="N m", hold="linear"), "u2": Input(unit="N m", hold="linear")},
        name="two_link",
    )
    free = ("upper.inertia.yy", "upper.com.z", "lower.inertia.yy", "lower.com.z", "*.viscous", "*.coulomb")
    limits = Limits(
        {
            "shoulder": JointLimits((-1.5, 1.5), 3.0, 15.0, 15.0),
            "elbow": JointLimits((-2.0, 2.0), 4.0, 20.0, 5.0),
        }
    )
    return Case(mechanism, free, limits, DesignSettings(duration=10.0))


def six_axis() -> Case:
    """The UR10 with the limits of its data sheet, halved in range; wished are all friction and a load at the flange."""
    path = Path(os.environ["SHADOWFIT_DATA"]) / "arm_ur10" / "ur10.urdf"
    mechanism = robot_model(read_robot(path, Reading())).mechanism
    names = list(mechanism.joints)
    speeds, torques = (2.16, 2.16, 3.15, 3.2, 3.2, 3.2), (330.0, 330.0, 150.0, 54.0, 54.0, 54.0)
    mechanism = with_friction(mechanism)
    joints = {
        name: JointLimits((-1.5, 1.5), speed, 5.0, torque)
        for name, speed, torque in zip(names, speeds, torques, strict=True)
    }
    free = ("*.viscous", "*.coulomb", "forearm_link.mass", "wrist_3_link.mass", "wrist_3_link.com.*")
    return Case(mechanism, free, Limits(joints), DesignSettings(duration=10.0))


def six_axis_told() -> Case:
    """The same without the centre of mass of the load, which ten seconds do not tell: all wishes can be fulfilled."""
    case = six_axis()
    return dataclasses.replace(case, free=tuple(name for name in case.free if ".com." not in name))


def with_friction(mechanism: Mechanism) -> Mechanism:
    """Viscous and dry friction in joints that the file has none for."""
    joints = {
        name: dataclasses.replace(
            joint, viscous=np.asarray(5.0), friction=Coulomb(coulomb=5.0), laws=heavier(joint.laws)
        )
        for name, joint in mechanism.joints.items()
    }
    return mechanism.having(joints=Parts(joints))


def heavier(laws: Parts) -> Parts:
    """Motors with rotors: without them 5 N m of friction would stop a wrist in a step."""
    return Parts({name: dataclasses.replace(law, shaft_inertia=np.asarray(0.5)) for name, law in laws.items()})


def double_pendulum() -> Case:
    """Two links that can only be let go."""
    free = ("link2.mass", "link1.inertia.yy", "link2.inertia.yy", "hinge1.viscous", "hinge2.viscous")
    mechanism = read_model("chain2").set({"hinge1.viscous": 2e-3, "hinge2.viscous": 1e-3})
    limits = Limits({name: JointLimits((-2.5, 2.5)) for name in ("hinge1", "hinge2")})
    return Case(mechanism, free, limits, DesignSettings(duration=10.0))


def three_link() -> Case:
    """Three links in a vertical plane, a motor at each joint: a machine that the search was not made on."""
    bodies = {
        "first": Body(3.0, np.diag([0.06, 0.06, 0.006]), com=(0.0, 0.0, -0.2)),
        "second": Body(1.5, np.diag([0.02, 0.02, 0.003]), com=(0.0, 0.0, -0.18)),
        "third": Body(0.5, np.diag([0.003, 0.003, 5e-4]), com=(0.0, 0.0, -0.1)),
    }
    chain = ("world", *bodies)
    joints = {f"j{i}": hinge(**link(chain[i - 1], chain[i], f"u{i}")) for i in (1, 2, 3)}
    mechanism = Mechanism(
        bodies,
        joints,
        sensors={f"q{i}": JointPosition(joint=f"j{i}", std=2e-4) for i in (1, 2, 3)},
        inputs={f"u{i}": Input(unit="N m", hold="linear") for i in (1, 2, 3)},
        name="three_link",
    )
    free = ("*.inertia.yy", "*.com.z", "*.viscous", "*.coulomb")
    each = zip(joints, (2.0, 3.0, 5.0), (40.0, 15.0, 4.0), strict=True)
    limits = Limits({name: JointLimits((-1.2, 1.2), speed, 5.0 * speed, torque) for name, speed, torque in each})
    return Case(mechanism, free, limits, DesignSettings(duration=8.0))


def flexible() -> Case:
    """A motor that drives a load through a soft shaft: a machine that the search was not made on."""
    bodies = {
        "motor": Body(1.0, np.diag([1e-3, 1e-3, 2e-3])),
        "load": Body(2.0, np.diag([3e-3, 3e-3, 5e-3])),
    }
    joints = {
        "drive": hinge(
            parent="world",
            child="motor",
            axis=(0.0, 0.0, 1.0),
            viscous=5e-3,
            friction=Coulomb(coulomb=0.01),
            laws={"motor": TorqueMotor(0.05, input="i")},
            compliance=1e-9,
        ),
        "shaft": hinge(
            parent="motor",
            child="load",
            axis=(0.0, 0.0, 1.0),
            viscous=2e-3,
            laws={"spring": Spring(stiffness=1.5)},
            compliance=1e-9,
        ),
    }
    sensors = {f"{name}_angle": JointPosition(joint=name, std=5e-4) for name in joints}
    mechanism = Mechanism(bodies, joints, sensors=sensors, inputs={"i": Input(unit="A")}, name="flexible")
    free = ("drive.motor.gain", "motor.inertia.zz", "*.viscous", "drive.coulomb", "shaft.spring.stiffness")
    limits = Limits(
        {"drive": JointLimits((-3.0, 3.0)), "shaft": JointLimits((-0.5, 0.5))}, {"i": InputLimits((-5.0, 5.0))}
    )
    return Case(mechanism, free, limits, DesignSettings(duration=8.0))


CASES: dict[str, Callable[[], Case]] = {
    "furuta": furuta,
    "cartpole": cartpole,
    "two_link": two_link,
    "six_axis": six_axis,
    "double_pendulum": double_pendulum,
}
# Machines and wishes that the search was not made on.
UNSEEN: dict[str, Callable[[], Case]] = {
    "three_link": three_link,
    "flexible": flexible,
    "six_axis_told": six_axis_told,
}


def compare(names: list[str]) -> None:
    """A line for each machine."""
    ratios = []
    for name in names:
        began, busy = time.perf_counter(), time.process_time()
        found = (CASES | UNSEEN)[name]().designed()
        seconds = f"{time.perf_counter() - began:.0f} s, {time.process_time() - busy:.0f} s of processors"
        usual = "  ".join(
            f"{key} {100 * value:.3g} % (×{value / found.criterion:.2f})" for key, value in found.usual.items()
        )
        first = next(iter(found.usual.values()))
        ratios.append(first / found.criterion)
        looked = f"{found.evaluations} motions, {seconds}"
        print(f"{name:16s} designed {100 * found.criterion:.3g} %  {usual}  {looked}", flush=True)
        for finding in found.unknown:
            print(f"    no motion: {in_words(finding)}")
    print(f"median ratio to the first usual motion: {np.median(ratios):.2f}")


def figures() -> None:
    """Figures of the docs."""
    found = cartpole().designed()
    for name, figure in (("motion", motion_figure(found)), ("growth", growth_figure(found))):
        figure.savefig(FIGURES / f"design-{name}.png", dpi=100)


def promise(names: list[str], seeds: int, defaults: bool, seconds: float) -> None:
    """Simulate the designed motion with noise, fit, and compare the scatter of the estimates with the promise.

    Fits have the weights that belong to the noise, or find them by themselves (``defaults``). After some seconds no
    further seed is begun.
    """
    for name in names:
        case = (CASES | UNSEEN)[name]()
        found = case.designed()
        led_along = isinstance(found.setup.drive, JointMotion)
        record = leading(found) if led_along else functools.partial(play, found)
        told = Options(timestep=found.settings.interval, state_weight=1.0, errors=ErrorModel(found.force_noise))
        options = Options() if defaults else told
        random = np.random.default_rng(11)
        began = time.perf_counter()
        estimates = []
        while len(estimates) < seeds and time.perf_counter() < began + seconds:
            estimates.append(fit(found.experiment.mechanism, record(random), case.free, options=options))
        values = np.array([[row.value for row in estimate.table("gauss-newton")] for estimate in estimates])
        truth = found.experiment.problem.parameters.vector(found.experiment.problem.parameters.start())
        ratio = np.std(values, axis=0, ddof=1) / found.std
        shift = (np.mean(values, axis=0) - truth) / found.std
        stated = found.shift / found.std
        whole = np.sqrt(np.nanmean(ratio**2))
        took = f"{len(estimates)} seeds, {time.perf_counter() - began:.0f} s"
        held = [
            [own.lower <= value <= own.upper for own, value in zip(one.uncertainty().intervals(), truth, strict=True)]
            for one in estimates
        ]
        covered = f"{100 * np.mean(held):.0f} % of the fits' own 95 % intervals hold the truth"
        print(f"{name:16s} scatter/promise {whole:.3f} (all parameters), {took}; {covered}", flush=True)
        for label, own, off, said in zip(found.labels, ratio, shift, stated, strict=True):
            print(f"    {label:24s} {own:.3f}   mean off by {off:+.2f} bars, {said:+.2f} as the design says")


def play(found: Design, random: np.random.Generator) -> Recording:
    """A recording of inputs that are played (or of a release), with errors of all forces and of the sensors.

    Errors of forces are held over a sample; the machine is simulated in steps a FINER-th as long.
    """
    mechanism, interval = found.experiment.mechanism, found.settings.interval
    shaken = disturbed(mechanism)
    steps = len(found.motion.time) - 1
    held = {name: found.motion.inputs[0, :-1, i] for i, name in enumerate(mechanism.inputs)}
    held |= {f"{name}_error": level * random.normal(size=steps) for name, level in found.force_noise.items()}
    inputs = {name: np.repeat(signal, FINER) for name, signal in held.items()}
    start = Start(positions=dict(zip(mechanism.joints.names, found.motion.coordinates[0, 0].tolist(), strict=True)))
    run = simulate(
        shaken, start.state(shaken), inputs, timestep=interval / FINER, steps=FINER * steps, joints="rigid", substeps=1
    )
    readings = {name: np.asarray(values)[::FINER] for name, values in run.readings.items()}
    channels = {**noisy(mechanism, readings, random), **{name: np.append(held[name], 0.0) for name in mechanism.inputs}}
    return Recording(found.motion.time, channels)


def leading(found: Design) -> Callable[[np.random.Generator], Recording]:
    """Recordings of a motion that a controller leads the machine along; what is read has errors, forces too.

    The drive holds torques as the model says, and the machine is simulated in steps a FINER-th as long
    (:mod:`shadowfit.designs.led`), once: errors of what is read do not act.
    """
    own = found.experiment
    mechanism, sampling = own.mechanism, own.sampling
    finer = dataclasses.replace(sampling, timestep=sampling.interval / FINER)
    exact = experiment(mechanism, Start(), (), finer)
    motion = led(own, exact, found.setup.drive, found.coefficients)
    bodies = own.bodies(motion.pose)
    pose = Pose(bodies.position[0], bodies.orientation[0])
    still = State(pose, np.zeros((*pose.position.shape[:-1], 6)))
    readings = observe.readings(mechanism, still, at_rest(mechanism, len(pose.position)))

    def recorded(random: np.random.Generator) -> Recording:
        channels = noisy(mechanism, readings, random)
        for joint, part in mechanism.joints.items():
            for law in part.laws.values:
                error = found.force_noise[joint] / float(law.gain) * random.normal(size=len(pose.position))
                channels[law.input] = motion.inputs[0, :, mechanism.inputs.index(law.input)] + error
        return Recording(motion.time, channels)

    return recorded


def noisy(mechanism: Mechanism, readings: dict[str, np.ndarray], random: np.random.Generator) -> dict[str, np.ndarray]:
    """Readings with the noise of their sensors."""
    return {
        name: np.asarray(values) + float(mechanism.sensors[name].std) * random.normal(size=np.shape(values))
        for name, values in readings.items()
    }


def disturbed(mechanism: Mechanism) -> Mechanism:
    """The machine with one more motor at each joint, for errors of its force."""
    joints = {
        name: dataclasses.replace(
            joint, laws=Parts({**dict(joint.laws.items()), "error": TorqueMotor(1.0, input=f"{name}_error")})
        )
        for name, joint in mechanism.joints.items()
    }
    inputs = dict(mechanism.inputs.items()) | {f"{name}_error": Input(unit="N m") for name in joints}
    return mechanism.having(joints=Parts(joints), inputs=Parts(inputs))


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("compare", "promise", "figures"))
    parser.add_argument("machines", nargs="*", metavar="MACHINE", help=", ".join(CASES | UNSEEN))
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=np.inf, help="of each machine, after which no seed is begun")
    parser.add_argument("--defaults", action="store_true", help="fits find the levels of the noise by themselves")
    chosen = parser.parse_args()
    names = chosen.machines or list(CASES)
    start_jax()
    if chosen.what == "compare":
        compare(names)
    elif chosen.what == "promise":
        promise(names, chosen.seeds, chosen.defaults, chosen.seconds)
    else:
        figures()


if __name__ == "__main__":
    main()
