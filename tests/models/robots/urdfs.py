"""URDF files made up by Hypothesis."""

import numpy as np
from hypothesis import strategies as st

MOVING = ("revolute", "continuous", "prismatic")


def numbers(values) -> str:
    return " ".join(repr(float(value)) for value in values)


def inertial(rng: np.random.Generator, mass: float) -> str:
    """Mass properties of a cloud of points, in turned axes: possible, and nothing special."""
    cloud = rng.normal(size=(8, 3)) * rng.uniform(0.02, 0.2, 3)
    cloud -= cloud.mean(axis=0)
    matrix = mass * np.mean([p @ p * np.eye(3) - np.outer(p, p) for p in cloud], axis=0)
    moments = dict(
        zip(("xx", "yy", "zz", "xy", "xz", "yz"), matrix[(0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)], strict=True)
    )
    written = " ".join(f'i{key}="{value!r}"' for key, value in ((k, float(v)) for k, v in moments.items()))
    origin = f'<origin rpy="{numbers(rng.uniform(-3, 3, 3))}" xyz="{numbers(rng.normal(size=3) * 0.1)}"/>'
    return f'<inertial>\n      {origin}\n      <mass value="{mass!r}"/>\n      <inertia {written}/>\n    </inertial>'


@st.composite
def urdfs(draw, kinds=(*MOVING, "fixed")) -> str:
    """A tree of up to six links with joints of some kinds; the first joint moves, the links that move have mass."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, 5))
    types = [draw(st.sampled_from([kind for kind in kinds if kind != "fixed"]))]
    types += [draw(st.sampled_from(kinds)) for _ in range(count - 1)]
    lines = ['<?xml version="1.0"?>', "<!-- made up -->", '<robot name="made-up">', '  <link name="base"/>']
    for i, kind in enumerate(types, 1):
        parent = "base" if i == 1 else f"link{draw(st.integers(1, i - 1))}"
        heavy = kind != "fixed" or draw(st.booleans())
        body = f"\n    {inertial(rng, float(rng.uniform(0.1, 5.0)))}\n  " if heavy else ""
        lines.append(f'  <link name="link{i}">{body}</link>' if body else f'  <link name="link{i}"/>')
        axis = f'\n    <axis xyz="{numbers(rng.normal(size=3))}"/>' if kind != "fixed" else ""
        loss = numbers(rng.uniform(0, 1, 1)) if draw(st.booleans()) else "0"
        lines.append(
            f'  <joint name="joint{i}" type="{kind}">\n    <parent link="{parent}"/> <child link="link{i}"/>'
            f'\n    <origin xyz="{numbers(rng.normal(size=3) * 0.3)}" rpy="{numbers(rng.uniform(-3, 3, 3))}"/>{axis}'
            f'\n    <limit lower="-3" upper="3" effort="1" velocity="1"/> <dynamics damping="{loss}" friction="0.25"/>'
            "\n  </joint>"
        )
    return "\n".join([*lines, "</robot>", ""])
