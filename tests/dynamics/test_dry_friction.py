"""Dry friction in motion: blocks on inclines, hinges that come to rest, and the limit of the friction impulse."""

import numpy as np
import pytest

from dynamics.scenes import STEPPERS, released, run, with_joints
from shadowfit.dynamics import State, Trajectory, place
from shadowfit.mechanism import Coulomb, Mechanism
from shadowfit.models import builtin

G = 9.82
MU = 0.5
steppers = pytest.mark.parametrize("stepper", STEPPERS)


def on_the_plane(mechanism: Mechanism) -> State:
    return place(mechanism, poses={"box": ((0.0, 0.0, 0.05), (1.0, 0.0, 0.0, 0.0))})


@steppers
def test_a_block_sticks_below_the_angle_of_friction(stepper: str) -> None:
    """It creeps as documented, at stick_time·F/4 times the mobility of a corner: hundredths of a mm a second."""
    angle = np.arctan(MU) - 0.01
    mechanism = builtin.incline(angle, MU)
    second = run(mechanism, on_the_plane(mechanism), 1.0, 4e-3, stepper)
    along = np.asarray(second.states.pose.position[:, 0, 0])
    mobility = 1.0 + (0.1**2 + 0.05**2) / 1e-3  # 1 kg, 1e-3 kg m², half sizes 0.1 and 0.05 m
    creep = mechanism.get("floor.stick_time") * G * np.sin(angle) / 4.0 * mobility
    half = len(along) // 2
    assert 2.0 * (along[-1] - along[half]) == pytest.approx(creep, rel=0.5)
    assert abs(along[-1]) < 1e-4


@steppers
def test_a_block_slides_above_the_angle_of_friction(stepper: str) -> None:
    """With the acceleration g (sin − μ cos), as soon as it has settled on the plane."""
    angle = np.arctan(MU) + 0.1
    mechanism = builtin.incline(angle, MU)
    timestep = 4e-3
    slide = run(mechanism, on_the_plane(mechanism), 1.0, timestep, stepper)
    speed = np.asarray(slide.states.velocity[:, 0, 0])
    expected = G * (np.sin(angle) - MU * np.cos(angle))
    half = len(speed) // 2
    measured = (speed[-1] - speed[half]) / (timestep * (len(speed) - 1 - half))
    assert measured == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(slide.states.pose.orientation[-1, 0], [1, 0, 0, 0], atol=1e-4)  # it does not tip


@steppers
def test_a_block_without_friction_slides_freely(stepper: str) -> None:
    mechanism = builtin.incline(0.3, 0.0)
    slide = run(mechanism, on_the_plane(mechanism), 0.5, 4e-3, stepper)
    speed = np.asarray(slide.states.velocity[:, 0, 0])
    assert (speed[-1] - speed[25]) / (4e-3 * 100) == pytest.approx(G * np.sin(0.3), rel=1e-9)


def coulomb_pendulum(torque: float, **values: float) -> tuple[Mechanism, float]:
    """A pendulum with constant dry friction, and m g l."""
    mechanism = with_joints(builtin.pendulum(), dry=0.0, coulomb=torque, viscous=0.0, compliance=1e-9, **values)
    return mechanism, mechanism.get("pendulum.mass") * G * -mechanism.get("hinge.child_point.x")


def turning_points(trajectory: Trajectory) -> np.ndarray:
    """Angles where the motion turns round, however short it sticks there; the first is the start."""
    theta = np.asarray(trajectory.readings["theta"])
    moving = np.flatnonzero(np.abs(np.diff(theta)) > 1e-7)
    way = np.sign(np.diff(theta)[moving])
    return theta[[0, *moving[1:][way[1:] * way[:-1] < 0]]]


@steppers
def test_constant_friction_takes_its_torque_times_the_way_from_every_swing(stepper: str) -> None:
    """m g l (cos θ_{k+1} − cos θ_k) = τ (|θ_k| + |θ_{k+1}|), exactly; a straight line of amplitudes when small."""
    torque = 0.02
    mechanism, weight = coulomb_pendulum(torque, damping=0.005)
    swing = released(mechanism, {"hinge": 1.5}, 6.0, 5e-4, stepper)
    peaks = np.abs(turning_points(swing))
    assert len(peaks) > 5
    lost = weight * (np.cos(peaks[1:]) - np.cos(peaks[:-1]))
    np.testing.assert_allclose(lost, torque * (peaks[1:] + peaks[:-1]), rtol=0.02 if stepper == "spook" else 2e-3)


@steppers
def test_a_hinge_with_dry_friction_comes_to_rest_in_finite_time(stepper: str) -> None:
    """And stays within asin(τ / m g l) of the bottom, where gravity cannot overcome the friction."""
    torque = 0.05
    mechanism, weight = coulomb_pendulum(torque)
    swing = released(mechanism, {"hinge": 1.5}, 6.0, 2e-3, stepper)
    theta, time = np.asarray(swing.readings["theta"]), np.asarray(swing.time)
    still = np.abs(theta - theta[-1]) < 1e-5
    rest = time[np.flatnonzero(~still)[-1]]
    assert 0.5 < rest < 4.0
    assert abs(theta[-1]) < np.arcsin(torque / weight)
    # At rest it creeps under the weight's torque at stick_time·(τ/J): tiny, and bounded by the documented rate.
    inertia = mechanism.get("pendulum.inertia.yy")
    creep = mechanism.get("hinge.stick_time") * weight * np.sin(abs(theta[-1])) / inertia
    assert np.ptp(theta[time > rest + 0.5]) < 2.0 * creep * (time[-1] - rest)


@steppers
def test_held_off_the_bottom_it_does_not_move(stepper: str) -> None:
    mechanism, weight = coulomb_pendulum(0.05)
    angle = 0.95 * np.arcsin(0.05 / weight)
    held = released(mechanism, {"hinge": angle}, 1.0, 2e-3, stepper)
    np.testing.assert_allclose(held.readings["theta"], angle, rtol=0, atol=1e-4)
    let_go = released(mechanism, {"hinge": 1.1 * np.arcsin(0.05 / weight)}, 1.0, 2e-3, stepper)
    assert float(let_go.readings["theta"][-1]) < np.arcsin(0.05 / weight)


DRY, LEVEL, RADII = 2e-3, 3e-2, np.array([0.5, 2.0])


def rough_furuta() -> Mechanism:
    """Friction from the joints' forces and a constant level, in both hinges, large enough to stop it now and then."""
    radii = {"hinge1.dry_radius": RADII[0], "hinge2.dry_radius": RADII[1]}
    return with_joints(builtin.furuta(), dry=DRY, coulomb=LEVEL).set(radii)


def furuta_swing(mechanism: Mechanism, stepper: str, timestep: float = 4e-3) -> Trajectory:
    state = place(mechanism, {"hinge2": 2.5}, {"hinge1": 1.0})
    return run(mechanism, state, 4.0, timestep, stepper, {"u": lambda t: 0.5 * np.sin(3.0 * t)})


@steppers
def test_the_friction_impulse_stays_in_its_limit_and_opposes_motion(stepper: str) -> None:
    """|λ_t| ≤ Σ U_i |λ_i| + h·level at every step; on the limit while sliding; less when stuck; never driving."""
    timestep = 4e-3
    swing = furuta_swing(rough_furuta(), stepper, timestep)
    multipliers = np.asarray(swing.diagnostics.multipliers[0])[1:]  # (steps, joints, 5 gaps + axis + tangent)
    gap, tangent = multipliers[..., :5], multipliers[..., -1]
    weights = DRY * np.stack([RADII, RADII, RADII, np.ones(2), np.ones(2)], axis=1)
    limit = np.sum(weights * np.abs(gap), axis=-1) + timestep * LEVEL
    assert np.all(np.abs(tangent) <= limit * (1 + 1e-9) + 1e-15)
    angles = np.stack([swing.readings["theta1"], swing.readings["theta2"]], axis=1)
    speed = np.diff(angles, axis=0) / timestep
    sliding, stuck = np.abs(speed) > 0.05, np.abs(speed) < 1e-5
    assert min(sliding.sum(), stuck.sum()) > 50
    np.testing.assert_allclose(-tangent[sliding], (np.sign(speed) * limit)[sliding], rtol=1e-7)
    assert np.mean(np.abs(tangent[stuck]) < 0.99 * limit[stuck]) > 0.5


@steppers
def test_results_do_not_depend_on_the_regularisation_of_sticking(stepper: str) -> None:
    """A decade less and a decade more than the default stick_time: the swing stays the same."""
    default = rough_furuta()
    reference = furuta_swing(default, stepper)
    for factor in (0.1, 10.0):
        other = furuta_swing(with_joints(default, stick_time=factor * default.get("hinge1.stick_time")), stepper)
        for name in ("theta1", "theta2"):
            np.testing.assert_allclose(other.readings[name], reference.readings[name], rtol=0, atol=1e-4)


def test_radius_and_coefficient_count_as_a_product_on_lengths() -> None:
    """U = (rμ rμ rμ μ μ): with angular rows unloaded, twice the radius is twice the coefficient."""
    swings = []
    for dry, radius in ((0.02, 0.1), (0.04, 0.05)):
        mechanism = with_joints(builtin.pendulum(), dry=dry, coulomb=0.0).set({"hinge.dry_radius": radius})
        swings.append(np.asarray(released(mechanism, {"hinge": 1.5}, 2.0, 2e-3, "spook").readings["theta"]))
    np.testing.assert_allclose(swings[0], swings[1], rtol=0, atol=1e-9)
    assert np.abs(swings[0]).max() < 1.5 + 1e-9


def test_slider_friction_is_the_coefficient_times_the_normal_force() -> None:
    """A cart on a rail, settled under its weight then pushed: friction takes μ N of the force, N the weight."""
    smooth = with_joints(builtin.cartpole(friction=True), viscous=0.0, coulomb=0.0).set({"rail.dry_radius": 1e3})
    weight = (smooth.get("cart.mass") + smooth.get("pole.mass")) * G
    force, settled, timestep, dry = 3.0, 0.3, 1e-3, 0.2
    speeds = []
    for mechanism in (smooth, smooth.set({"rail.dry": dry})):
        push = run(mechanism, place(mechanism), 0.31, timestep, "spook", {"u": lambda t: force * (t > settled)})
        speeds.append(float(push.states.velocity[-1, 0, 0]))
    assert 1.0 - speeds[1] / speeds[0] == pytest.approx(dry * weight / force, rel=2e-3)


def test_default_friction_law_is_the_papers() -> None:
    law = Coulomb(dry=0.1)
    assert (float(law.dry_radius), float(law.coulomb)) == (1.0, 0.0)
