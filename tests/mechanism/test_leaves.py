"""Named numbers: order, units, reading and writing, on numbers and on tracers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shadowfit.errors import MechanismError, UnknownNameError
from shadowfit.mechanism import Body, Coulomb, Input, JointPosition, Mechanism, TorqueMotor, hinge, leaves, slider
from trees import same_trees


def mechanism() -> Mechanism:
    return Mechanism(
        {"arm": Body(0.2, (0.01, 0.02, 0.02), com=(0.1, 0.0, 0.0)), "cart": Body(1.0, (1, 1, 1))},
        {
            "hinge1": hinge(
                "world",
                "arm",
                axis=(0, 0, 1),
                friction=Coulomb(dry=0.1),
                laws={"motor": TorqueMotor(gain=0.3, input="u")},
            ),
            "rail": slider("world", "cart", viscous=0.5),
        },
        sensors={"theta": JointPosition("hinge1"), "x": JointPosition("rail", rotary=False)},
        inputs={"u": Input(unit="V")},
        name="test",
    )


EXPECTED_UNITS = {
    "arm.mass": "kg",
    "arm.inertia.zz": "kg m²",
    "arm.inertia.xy": "kg m²",
    "arm.com.x": "m",
    "hinge1.parent_point.z": "m",
    "hinge1.child_rotation": "rad",
    "hinge1.compliance.linear": "m/N",
    "hinge1.compliance.rotational": "rad/(N m)",
    "hinge1.damping": "s",
    "hinge1.viscous": "N m s/rad",
    "hinge1.dry": "1",
    "hinge1.coulomb": "N m",
    "hinge1.dry_radius": "m",
    "hinge1.motor.gain": "N m/V",
    "hinge1.motor.shaft_inertia": "kg m²",
    "rail.viscous": "N s/m",
    "theta.offset": "rad",
    "theta.std": "rad",
    "x.offset": "m",
    "u.gain": "1",
    "u.delay": "s",
    "gravity.acceleration": "m/s²",
    "gravity.tilt": "rad",
}


@pytest.mark.parametrize(("name", "unit"), EXPECTED_UNITS.items())
def test_every_number_has_its_name_and_unit(name: str, unit: str) -> None:
    assert mechanism().unit(name) == unit


def test_every_leaf_is_read_back_as_written() -> None:
    """Set each number on its own: it changes, and nothing else does."""
    base = mechanism()
    values = {name: base.get(name) for name in base.leaves()}
    for name, value in values.items():
        new = np.roll(value, 1) if np.ndim(value) else value + 0.25
        changed = base.write({name: new})
        np.testing.assert_array_equal(changed.get(name), new)
        others = [n for n in values if n != name and not np.array_equal(changed.get(n), values[n])]
        assert others == []


def test_several_components_of_a_vector_at_once() -> None:
    changed = mechanism().set({"arm.com.x": 1.0, "arm.com.z": 3.0})
    np.testing.assert_array_equal(changed.bodies["arm"].com, [1.0, 0.0, 3.0])


def test_set_leaves_the_original_alone() -> None:
    base = mechanism()
    base.set({"arm.mass": 5.0})
    assert base.get("arm.mass") == 0.2


def test_set_and_get_round_trip_all_numbers() -> None:
    base = mechanism()
    again = base.set({name: base.get(name) for name in base.leaves()})
    assert same_trees(base, again)


def test_write_works_on_tracers_and_is_differentiable() -> None:
    def weight(mass: jax.Array, offset: jax.Array) -> jax.Array:
        written = mechanism().write({"arm.mass": 2.0 * mass, "arm.com.y": offset})
        return written.bodies["arm"].mass * jnp.sum(written.bodies["arm"].com)

    by_mass, by_offset = jax.jit(jax.grad(weight, argnums=(0, 1)))(1.5, 0.4)
    assert float(by_mass) == pytest.approx(2.0 * 0.5)
    assert float(by_offset) == pytest.approx(3.0)


def test_the_structure_is_static_and_the_numbers_are_not() -> None:
    base = mechanism()
    assert jax.tree.structure(base) == jax.tree.structure(base.set({"arm.mass": 3.0}))
    assert len(jax.tree.leaves(base)) == len({leaf.path for leaf in base.leaves().values()})


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("arm.mas", "'arm.mass'"), ("hinge1.viscos", "'hinge1.viscous'"), ("hinge.dry", "'hinge1.dry'")],
)
def test_unknown_names_bring_the_nearest(name: str, suggestion: str) -> None:
    for access in (lambda m: m.get(name), lambda m: m.set({name: 1.0}), lambda m: m.unit(name)):
        with pytest.raises(UnknownNameError, match=f"test has no parameter '{name}'; did you mean .*{suggestion}"):
            access(mechanism())


def test_match_takes_patterns_and_tunable_numbers_only() -> None:
    found = mechanism().match("*.inertia.*")
    assert len(found) == 12
    assert "theta.std" not in mechanism().match("theta.*")
    with pytest.raises(UnknownNameError, match=r"no parameter 'arm\.inertias"):
        mechanism().match("arm.inertias.*")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"arm.mass": -1.0}, r"arm\.mass is -1; it must be at least 0 \[kg\]"),
        ({"arm.inertia.zz": 1.0}, r"arm\.inertia has principal moments .*triangle inequality"),
        ({"hinge1.viscous": np.nan}, r"hinge1\.viscous is nan; it must be a finite number"),
        ({"hinge1.dry": -0.1}, r"hinge1\.dry is -0.1; it must be at least 0"),
        ({"hinge1.coulomb": -0.1}, r"hinge1\.coulomb is -0.1; it must be at least 0"),
        ({"hinge1.compliance.linear": -1e-9}, r"hinge1\.compliance\.linear is -1e-09; it must be at least 0 \[m/N\]"),
        ({"hinge1.damping": -1.0}, r"hinge1\.damping is -1; it must be at least 0 \[s\]"),
        ({"gravity.tilt": (1.0, 1.0, 0.0, 0.0)}, r"gravity\.tilt is .*; a rotation is a unit quaternion"),
        ({"gravity.tilt": (1.0, 0.0)}, r"gravity\.tilt has shape \(2,\); it must be 4 numbers"),
        ({"arm.mass": (1.0, 2.0)}, r"arm\.mass has shape \(2,\); it must be one number \[kg\]"),
        ({"u.delay": -0.1}, r"u\.delay is -0.1; it must be at least 0 \[s\]"),
    ],
)
def test_set_checks_like_building(values: dict, message: str) -> None:
    with pytest.raises(MechanismError, match=message):
        mechanism().set(values)


def test_text_is_no_number() -> None:
    with pytest.raises(MechanismError, match="'heavy' is not a number"):
        Body("heavy", (1, 1, 1))


def test_parts_are_found_by_name() -> None:
    parts = leaves.Parts({"first": 1, "second": 2})
    assert (parts["second"], len(parts), list(parts), "first" in parts) == (2, 2, ["first", "second"], True)
    with pytest.raises(UnknownNameError, match="no part 'frist'; did you mean 'first'"):
        parts["frist"]
