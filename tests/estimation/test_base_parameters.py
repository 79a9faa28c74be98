"""Base parameters: the textbook's combinations of a plane arm, error bars, torques that are the same along the rest."""

import numpy as np
import pytest

from estimation.arms import TIMESTEP, arm, as_motions, driven, impulses, paths, sweep_of
from shadowfit.estimation import Options, fit
from shadowfit.estimation.uncertainty.base_parameters import pivots
from shadowfit.evaluation.rules import judge
from shadowfit.evaluation.summary import base_parameters as summarised
from shadowfit.mechanism import Body, Input, JointPosition, Mechanism, TorqueMotor, hinge

LENGTH = 0.3
BODIES = {
    "link1": Body(1.2, (0.01, 0.02, 0.018), com=(0.12, 0.0, 0.03)),
    "link2": Body(0.8, (0.004, 0.009, 0.008), com=(0.1, 0.01, -0.02)),
}


def plane_arm(bodies=BODIES):
    """Two hinges about y, the second at the end of the first link; frames at the hinges."""
    joints = {
        f"joint{i}": hinge(
            parent,
            f"link{i}",
            axis=(0.0, 1.0, 0.0),
            parent_point=point,
            viscous=0.1,
            laws={"motor": TorqueMotor(1.0, 0.0, input=f"u{i}")},
            compliance=1e-9,
        )
        for i, parent, point in ((1, "world", (0.0, 0.0, 0.0)), (2, "link1", (LENGTH, 0.0, 0.0)))
    }
    sensors = {f"q{i}": JointPosition(joint=f"joint{i}", std=1e-4) for i in (1, 2)}
    inputs = {f"u{i}": Input(delay=0.5 * TIMESTEP, unit="N m") for i in (1, 2)}
    return Mechanism(bodies, joints, sensors=sensors, inputs=inputs, name="plane_arm")


@pytest.fixture(scope="module")
def estimate():
    truth = plane_arm()
    options = Options(unknowns="joint", correction="none", state_weight=1e8)
    free = ["link?.inertial", "joint?.viscous"]
    return fit(truth, driven(truth, 150, 1e-4), free, options=options)


EXPECTED = {
    "link1.mass·com.x": {"link2.mass": LENGTH},
    "link1.mass·com.z": {},
    "link1.moment.yy": {"link2.mass": LENGTH**2},
    "link2.mass·com.x": {},
    "link2.mass·com.z": {},
    "link2.moment.yy": {},
    "joint1.viscous": {},
    "joint2.viscous": {},
}


def test_the_textbooks_combinations_of_a_plane_arm(estimate):
    found = estimate.base_parameters
    assert {one.name for one in found.combinations} == set(EXPECTED)
    for one in found.combinations:
        others = {name: k for name, k in one.coefficients.items() if name != one.name and abs(one.shares[name]) > 1e-3}
        assert set(others) == set(EXPECTED[one.name])
        for name, factor in EXPECTED[one.name].items():
            assert others[name] == pytest.approx(factor, rel=1e-3)
    never = {"link1.mass", "link1.mass·com.y", "link2.mass·com.y"}
    never |= {f"link{i}.moment.{entry}" for i in (1, 2) for entry in ("xx", "zz", "xy", "xz", "yz")}
    assert set(found.unseen) == never


def test_values_and_error_bars(estimate):
    mass, centre = 1.2, np.array([0.12, 0.0, 0.03])
    truth = {
        "link1.mass·com.x": mass * centre[0] + LENGTH * 0.8,
        "link1.moment.yy": 0.02 + mass * (centre[0] ** 2 + centre[2] ** 2) + LENGTH**2 * 0.8,
        "link2.moment.yy": 0.009 + 0.8 * (0.1**2 + 0.02**2),
        "joint1.viscous": 0.1,
    }
    found = {one.name: one for one in estimate.base_parameters.combinations}
    for name, value in truth.items():
        assert 0.0 < found[name].std < 0.1 * value
        assert abs(found[name].value - value) < 4.0 * found[name].std


def ten_of(mechanism, link):
    body = mechanism.bodies[link]
    com, inertia = np.asarray(body.com, float), np.array(body.inertia.rows(), float)
    mass = float(body.mass)
    return mass, mass * com, inertia + mass * (com @ com * np.eye(3) - np.outer(com, com))


def with_ten(link, mass, first, moments):
    com = first / mass
    central = moments - mass * (com @ com * np.eye(3) - np.outer(com, com))
    values = {f"{link}.mass": mass} | {f"{link}.com.{x}": v for x, v in zip("xyz", com, strict=True)}
    return values | {f"{link}.inertia.{a}{b}": central["xyz".index(a), "xyz".index(b)] for a, b in
                     ("xx", "yy", "zz", "xy", "xz", "yz")}  # fmt: skip


def test_torques_are_the_same_along_what_is_not_determined(estimate):
    """More mass of the second link, less first and second moment of the first, and anything that is not seen."""
    truth = plane_arm()
    (m1, h1, l1), (m2, h2, l2) = (ten_of(truth, link) for link in ("link1", "link2"))
    factors = {one.name: one.coefficients.get("link2.mass", 0.0) for one in estimate.base_parameters.combinations}
    more = 0.1
    unit = np.zeros((3, 3))
    unit[1, 1] = 1.0
    moved = with_ten(
        "link1",
        1.7 * m1,
        h1 - more * np.array([factors["link1.mass·com.x"], 0.05, 0.0]),
        l1 - more * factors["link1.moment.yy"] * unit + np.diag([0.01, 0.0, 0.02]),
    ) | with_ten("link2", m2 + more, h2 + np.array([0.0, 0.03, 0.0]), l2)
    motion = as_motions(paths(2, 60))
    torques = []
    for mechanism in (truth, truth.write(moved)):
        sweep, values = sweep_of(mechanism, ())
        torques.append(impulses(sweep, values, motion, np.zeros((60, 2))) / TIMESTEP)
    np.testing.assert_allclose(torques[1], torques[0], atol=1e-4 * np.abs(torques[0]).max())


def test_one_notice_and_one_table_instead_of_many_lines(estimate):
    texts = [notice.text for notice in judge(estimate)]
    assert sum("not identifiable" in text for text in texts) == 1
    assert any("8 base parameters, 2 of them combinations, and does not see 13 parameters" in text for text in texts)
    table = summarised(estimate)
    assert "link1.mass·com.x + 0.3·link2.mass" in [one["text"] for one in table["combinations"]]


def test_pivots_choose_independent_columns():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((50, 6))
    table[:, 4] = table[:, 0] - 2.0 * table[:, 3]
    table[:, 5] = 1e-3 * table[:, 5] / 50
    chosen = pivots(table.T @ table, np.ones(6), np.full(6, 1e-3))
    assert len(chosen) == 4
    assert 5 not in chosen
    assert np.linalg.matrix_rank(table[:, chosen]) == 4


def test_everything_told_is_every_parameter_by_itself():
    truth = arm(2)
    options = Options(unknowns="joint", correction="none", state_weight=1e6)
    estimate = fit(truth, driven(truth, 100, 1e-5), ["joint?.viscous", "joint?.coulomb"], options=options)
    found = estimate.base_parameters
    assert found.unseen == ()
    assert found.grouped == ()
    for one, row in zip(found.combinations, estimate.table("gauss-newton"), strict=True):
        assert (one.name, one.value, one.std) == (row.name, pytest.approx(row.value), pytest.approx(row.std, rel=1e-6))
