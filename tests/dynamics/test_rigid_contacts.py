"""Contacts and end stops in joint coordinates: as compliant joints have them, without energy from nowhere."""

import numpy as np
import pytest

from dynamics.linkages import fourbar
from dynamics.scenes import energy
from quick import quick
from shadowfit.dynamics import place, simulate
from shadowfit.mechanism import Body, JointLimit, Mechanism, Sphere, hinge, touch

H = 2e-3
STOPS = {"compliance": 1e-4, "damping": 2e-3}
FLOOR = {"friction": 0.4, "compliance": 1e-5, "damping": 4e-3, "stick_time": 1e-4}


def pendulum(links: int) -> Mechanism:
    """Rods that swing into the stops of their first and last joint."""
    bodies, joints, base = {}, {}, "world"
    for i in range(links):
        bodies[f"rod{i}"] = Body(0.5, (4e-3, 4e-3, 4e-3))
        places = {"parent_point": (0, 0, -0.3 if i else 0.0), "child_point": (0, 0, 0.3)}
        joints[f"pin{i}"] = hinge(base, f"rod{i}", axis=(0, 1, 0), viscous=5e-3, compliance=1e-12, **places)
        base = f"rod{i}"
    stops = {"stop": JointLimit("pin0", lower=-0.2, upper=2.0, **STOPS)}
    if links > 1:
        stops["last"] = JointLimit(f"pin{links - 1}", lower=-0.3, upper=0.6, **STOPS)
    return Mechanism(bodies, joints, contacts=stops, name=f"stopped{links}")


def hopper() -> Mechanism:
    """A floating trunk with a leg, whose foot and belly fall on a floor and whose hip has stops."""
    leg = hinge(
        "trunk", "leg", axis=(0, 1, 0), parent_point=(0.1, 0, 0), child_point=(0, 0, 0.15), viscous=0.02,
        compliance=1e-12,
    )  # fmt: skip
    return Mechanism(
        {"trunk": Body(1.0, (6e-3, 8e-3, 9e-3)), "leg": Body(0.2, (2e-3, 2e-3, 4e-4))},
        {"hip": leg},
        contacts={
            "foot": touch(Sphere(0.03), "leg", center=(0, 0, -0.15), **FLOOR),
            "belly": touch(Sphere(0.05), "trunk", center=(-0.15, 0, -0.05), **FLOOR),
            "stop": JointLimit("hip", lower=-0.6, upper=0.6, **STOPS),
        },
        name="hopper",
    )


def jammed() -> Mechanism:
    """A four-bar linkage whose crank meets a stop."""
    plain = fourbar()
    return Mechanism(
        dict(plain.bodies.items()),
        dict(plain.joints.items()),
        contacts={"stop": JointLimit("a", lower=-3.0, upper=1.2, **STOPS)},
        sensors=dict(plain.sensors.items()),
        inputs=dict(plain.inputs.items()),
        name="jammed",
    )


def start_of(mechanism: Mechanism):
    if mechanism.name == "hopper":
        pose = ((0, 0, 0.4), np.array([1.0, 0.0, 0.1, 0.0]) / np.sqrt(1.01))
        return place(mechanism, {"hip": 0.3}, {"hip": -6.0}, poses={"trunk": pose})
    return place(mechanism, {"pin0": 1.0})


SCENES = {
    "one stop": (lambda: pendulum(1), 300, 1e-6),
    "stops": (lambda: pendulum(2), 150, 1e-5),
    "hopper": (hopper, 200, 1e-5),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "scene", ["one stop", *(pytest.param(name, marks=pytest.mark.slow) for name in ("stops", "hopper"))]
)
def test_rigid_joints_touch_as_stiff_ones_do(scene: str) -> None:
    make, steps, limit = SCENES[scene]
    mechanism = make()
    ours, theirs = (
        simulate(mechanism, start_of(mechanism), timestep=H, steps=steps, joints=joints, substeps=1)
        for joints in ("rigid", "compliant")
    )
    moved = [np.asarray(run.states.pose.position) for run in (ours, theirs)]
    assert np.max(np.abs(moved[0] - moved[0][0])) > 0.05
    np.testing.assert_allclose(moved[0], moved[1], atol=limit)


@pytest.mark.parametrize("make", [lambda: pendulum(1), *quick([lambda: pendulum(2), hopper])], ids=["1", "2", "hopper"])
def test_what_bounces_never_has_more_energy_than_it_began_with(make) -> None:
    mechanism = make()
    run = simulate(mechanism, start_of(mechanism), timestep=H, steps=400, joints="rigid", diagnostics=True, substeps=1)
    total = energy(run)
    scale = np.ptp(total) + np.max(np.abs(total))
    assert np.max(total) - total[0] < 1e-3 * scale
    assert total[-1] < total[0]


def test_the_crank_of_a_loop_rests_at_its_stop() -> None:
    """Where the motor's torque, less what the rest of the machine weighs, presses it in by the stop's compliance."""
    mechanism = jammed()
    start = place(mechanism, {"a": 0.6})
    run = simulate(mechanism, start, {"u": 0.5}, timestep=H, steps=600, joints="rigid", diagnostics=True, substeps=1)
    angle = np.asarray(run.readings["crank_angle"])
    assert np.max(angle) < 1.2 + 5e-3  # it gives while it is hit
    still = simulate(mechanism, start, {"u": 0.6}, timestep=H, steps=600, joints="rigid", substeps=1)
    pressed = float(still.readings["crank_angle"][-1]) - angle[-1]
    assert pressed == pytest.approx(STOPS["compliance"] * 0.1, rel=0.05)
