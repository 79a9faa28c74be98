"""Limits: files and what is wrong with them, distances in space, and what counts as a violation."""

import numpy as np
import pytest

from models.robots.test_urdf import ARM
from shadowfit.designs import DesignError, Limits, rated, read_limits
from shadowfit.designs.constraints import largest_factors, moving_violations, violations
from shadowfit.designs.experiment import Sampling, experiment
from shadowfit.designs.limits import Box, InputLimits, JointLimits, Plane, Sphere
from shadowfit.designs.setup import without_stops
from shadowfit.designs.workspace import clearances
from shadowfit.dynamics import place
from shadowfit.geometry import Pose
from shadowfit.mechanism.contacts import JointLimit
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.models import Start, load_model, read_model

GOOD = """
self_distance = 0.02
[joints.rail]
position = [-0.3, 0.2]
speed = 1
torque = 4.0
end_speed = 0.02
[inputs.u]
range = [-5, 5]
rate = 50
[[spheres]]
body = "pole"
center = [0.0, 0.0, -0.3]
radius = 0.05
[[planes]]
point = [0.0, 0.0, -0.5]
normal = [0.0, 0.0, 2.0]
[[boxes]]
lower = [0.3, -1.0, -1.0]
upper = [0.4, 1.0, 1.0]
"""


def written(tmp_path, text):
    path = tmp_path / "limits.toml"
    path.write_text(text)
    return path


def test_a_file_says_what_it_says(tmp_path):
    found = read_limits(written(tmp_path, GOOD), read_model("cartpole"))
    assert found == Limits(
        {"rail": JointLimits((-0.3, 0.2), 1.0, None, 4.0, 0.02)},
        {"u": InputLimits((-5.0, 5.0), 50.0)},
        (Sphere("pole", (0.0, 0.0, -0.3), 0.05),),
        (Plane((0.0, 0.0, -0.5), (0.0, 0.0, 2.0)),),
        (Box((0.3, -1.0, -1.0), (0.4, 1.0, 1.0)),),
        0.02,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[joints.rial]\nspeed = 1", "no joint with an axis 'rial'; did you mean 'rail'"),
        ("[joints.rail]\nsped = 1", "sped is not a key of this table; did you mean 'speed'"),
        ("[joints.rail]\nspeed = 0", "must be positive, or no motion is allowed"),
        ("[joints.rail]\nend_speed = 0", "must be positive, or no motion is allowed"),
        ("[joints.rail]\nspeed = 'fast'", "must be a finite number"),
        ("[joints.rail]\nposition = [0.1]", "must be 2 numbers"),
        ("[joints.rail]\nposition = [0.1, -0.1]", "the lower limit 0.1 must be below the upper one, -0.1"),
        ("[inputs.v]\nrange = [0, 1]", "no input 'v'"),
        ("[[spheres]]\nbody = 'dog'", "no body 'dog'"),
        ("[[planes]]\npoint = [0, 0, 0]", "normal is missing"),
        ("[planes]\npoint = [0, 0, 0]", "must be written"),
        ("speed = 3", "speed is not a key of limits"),
        ("[joints", "cannot be read"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(tmp_path, text, message):
    with pytest.raises(DesignError, match=r"limits\.toml") as error:
        read_limits(written(tmp_path, text), read_model("cartpole"))
    assert message in str(error.value)


def test_distances_of_a_hanging_pole():
    mechanism = read_model("cartpole")
    state = place(mechanism, {"rail": 0.1, "pivot": np.pi / 2})
    bodies = Pose(np.asarray(state.pose.position)[None], np.asarray(state.pose.orientation)[None])
    limits = Limits(
        spheres=(Sphere("pole", (0.0, 0.0, 0.0), 0.05), Sphere("cart")),
        planes=(Plane((0.0, 0.0, -0.5), (0.0, 0.0, 2.0)),),
        boxes=(Box((0.5, -1.0, -1.0), (0.6, 1.0, 1.0)),),
        self_distance=0.01,
    )
    # The pole lies along −x at 0.3 m from the pivot; pole and cart are joined, so nothing is said about them.
    at = float(bodies.position[0, 1, 0])
    assert abs(at - 0.1) == pytest.approx(0.3)
    np.testing.assert_allclose(clearances(mechanism, limits, bodies), [[0.45, 0.5 - at - 0.05, 0.5, 0.4]], atol=1e-12)


def test_a_point_inside_a_box_is_its_depth_away():
    mechanism = read_model("cartpole")
    state = place(mechanism, {"rail": 0.1})
    bodies = Pose(np.asarray(state.pose.position)[None], np.asarray(state.pose.orientation)[None])
    limits = Limits(spheres=(Sphere("cart"),), boxes=(Box((0.0, -1.0, -1.0), (0.3, 1.0, 1.0)),))
    assert clearances(mechanism, limits, bodies)[0, 0] == pytest.approx(-0.1)


def test_end_stops_become_limits_and_contacts_are_refused():
    plain = read_model("cartpole")
    stops = {"stops": JointLimit("rail", lower=-0.4, upper=0.4)}
    parts = {name: dict(getattr(plain, name).items()) for name in ("bodies", "joints", "sensors", "inputs")}
    stopped = Mechanism(
        parts["bodies"], parts["joints"], contacts=stops, sensors=parts["sensors"], inputs=parts["inputs"]
    )
    free, limits = without_stops(stopped, Limits({"rail": JointLimits((-0.2, 0.6), 2.0)}))
    assert len(free.contacts) == 0
    assert limits.joints["rail"] == JointLimits((-0.2, 0.4), 2.0)
    for name, words in (("incline", "touches things"), ("fourbar", "form a tree")):
        with pytest.raises(DesignError, match=words):
            without_stops(read_model(name), Limits())


def test_violations_are_relative_and_shrink_with_the_motion():
    own = experiment(read_model("cartpole"), Start(), ("cart.mass",), Sampling(1.0, 0.01, 0.01))
    limits = Limits({"rail": JointLimits((-0.1, 0.1), 1.0)}, {"u": InputLimits((-2.0, 2.0))})
    shape = np.sin(2 * np.pi * own.sampling.times)

    def constrain(factors):
        inputs = factors[:, :1, None] * shape[None, :, None]
        return violations(own, limits, own.simulated(np.zeros((len(factors), 2)), inputs))

    assert np.max(constrain(np.zeros((1, 1)))) == pytest.approx(-1.0)
    assert np.max(constrain(np.full((1, 1), 3.0))) >= 0.5 - 1e-3
    factor = largest_factors(lambda factors: np.max(constrain(factors), axis=1), np.ones((1, 1)))[0]
    assert -0.05 < np.max(constrain(np.full((1, 1), factor))) <= 0.0


def test_the_largest_factor_that_holds_is_found_from_above():
    """A gap that holds below one that does not counts for nothing, and smaller factors are not looked at."""
    looked = []

    def excess(coefficients):
        looked.append(len(coefficients))
        size = np.abs(coefficients[:, 0])
        return np.where((size < 0.7) | ((size > 1.9) & (size < 2.1)), -1.0, 1.0)

    factors = largest_factors(excess, np.array([[1.0], [2.0], [1e9]]))
    np.testing.assert_allclose(factors[:2], [0.7, 0.35], rtol=0.05)
    assert factors[2] == 0.0
    assert sum(looked) < 3 * 20


def test_a_robot_file_limits_what_limits_leave_open(tmp_path):
    """Hinges stay within a quarter turn of the start, speeds and torques are as stated; what is given goes first."""
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.replace('lower="-1.5" upper="1.5"', 'lower="-6" upper="1.5"'))
    model = load_model(path)
    found, said = rated(Limits(), model, {"shoulder": 0.5})
    assert found.joints["shoulder"] == JointLimits((0.5 - np.pi / 2, 1.5), 1.0, None, 10.0)
    assert said == ["shoulder: position -1.07 to 1.5, speed up to 1, torque up to 10"]
    found, said = rated(Limits({"shoulder": JointLimits((-3.0, 1.0), 0.5)}), model, {})
    assert found.joints["shoulder"] == JointLimits((-3.0, 1.0), 0.5, None, 10.0)
    assert said == ["shoulder: torque up to 10"]


def test_limits_of_motions_by_coordinates_alone():
    """sin 2πt: speeds up to 2π, at the end too, accelerations up to (2π)²; each limit in eight pieces of time."""
    own = experiment(read_model("cartpole"), Start(), ("cart.mass",), Sampling(1.0, 0.01, 0.01))
    limits = Limits({"rail": JointLimits((-2.0, 0.5), 2.0, 10.0, end_speed=3.0)})
    motion = np.zeros((1, own.sampling.nodes, 2))
    motion[0, :, 0] = np.sin(2 * np.pi * own.sampling.times)
    found = moving_violations(own, limits, motion).reshape(8, 5).max(axis=0)
    expected = [0.5 / 1.25, -1.0 / 1.25, np.pi - 1.0, 4 * np.pi**2 / 10 - 1.0, 2 * np.pi / 3 - 1.0]
    np.testing.assert_allclose(found, expected, rtol=0.02)
