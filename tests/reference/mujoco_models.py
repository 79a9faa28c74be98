"""The Furuta pendulum and the four-bar linkage in MuJoCo, from the same parameters as the reduced equations.

MuJoCo's trees have joint coordinates too, but it derives their equations by its own recursions, and it
closes the four-bar's loop by a (slightly soft) constraint force. The models have no geometry, hence no
contacts, and use the fourth-order Runge-Kutta integrator. MuJoCo is imported only when a model is simulated.
"""

from itertools import pairwise
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from reference.reduced_ode import FourBar, Furuta, Motion, Signal


def furuta_mjcf(furuta: Furuta) -> str:
    """MJCF of the Furuta pendulum: joints `hinge1`, `hinge2`, motor `u`.

    At zero angles the arm lies along +x and the pendulum hangs. The pendulum's frame here is the arm's, so its
    inertias stand in the order x (hinge 2, JByy), y (JBzz), z (along the rod, JBxx). The shaft inertia is
    hinge 1's armature. MuJoCo demands that the inertias of each body satisfy the triangle inequality.
    """
    j_xx, j_yy, j_zz = furuta.pendulum_inertia
    return f"""
<mujoco model="furuta">
  <compiler angle="radian"/>
  <option integrator="RK4" gravity="{_numbers(furuta.gravity_vector)}"/>
  <worldbody>
    <body name="arm">
      <joint name="hinge1" axis="0 0 1" damping="{furuta.viscous[0]!r}" armature="{furuta.shaft_inertia!r}"/>
      <inertial pos="{furuta.arm_centre!r} 0 0" mass="{furuta.arm_mass!r}"
                diaginertia="{_numbers(furuta.arm_inertia)}"/>
      <body name="pendulum" pos="{furuta.hinge2_radius!r} 0 0">
        <joint name="hinge2" axis="1 0 0" damping="{furuta.viscous[1]!r}"/>
        <inertial pos="0 0 {-furuta.pendulum_centre!r}" mass="{furuta.pendulum_mass!r}"
                  diaginertia="{_numbers((j_yy, j_zz, j_xx))}"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="u" joint="hinge1" gear="{furuta.motor_gain!r}"/>
  </actuator>
</mujoco>
"""


def four_bar_mjcf(four_bar: FourBar, loop_time: float) -> str:
    """MJCF of the four-bar linkage: joints `crank`, `coupler` (against the crank), `rocker`, crank motor `u`.

    All links lie along +x at zero angles and turn about -y, from +x towards +z. Tips of coupler and rocker are
    joined by a connect constraint whose error decays with the time constant `loop_time` [s], critically damped,
    at the greatest impedance MuJoCo allows. The rods' inertia about their own axis plays no part in plane motion;
    it must not vanish, so it is a millionth of the others.
    """
    lengths = (four_bar.crank, four_bar.coupler, four_bar.rocker)
    crank, coupler, rocker = (_rod(m, length) for m, length in zip(four_bar.masses, lengths, strict=True))
    return f"""
<mujoco model="four_bar">
  <compiler angle="radian"/>
  <option integrator="RK4" gravity="0 0 {-four_bar.gravity!r}" solver="Newton" tolerance="1e-14"/>
  <default>
    <joint axis="0 -1 0"/>
  </default>
  <worldbody>
    <body name="crank">
      <joint name="crank"/>
      {crank}
      <body name="coupler" pos="{four_bar.crank!r} 0 0">
        <joint name="coupler"/>
        {coupler}
        <site name="coupler_tip" pos="{four_bar.coupler!r} 0 0"/>
      </body>
    </body>
    <body name="rocker" pos="{four_bar.ground!r} 0 0">
      <joint name="rocker"/>
      {rocker}
      <site name="rocker_tip" pos="{four_bar.rocker!r} 0 0"/>
    </body>
  </worldbody>
  <equality>
    <connect site1="coupler_tip" site2="rocker_tip"
             solref="{loop_time!r} 1" solimp="0.9999 0.9999 0.001 0.5 2"/>
  </equality>
  <actuator>
    <motor name="u" joint="crank" gear="1"/>
  </actuator>
</mujoco>
"""


def _rod(mass: float, length: float) -> str:
    """Inertial element of a uniform thin rod from the body's origin along +x."""
    across = mass * length**2 / 12
    inertia = _numbers((1e-6 * across, across, across))
    return f'<inertial pos="{length / 2!r} 0 0" mass="{mass!r}" diaginertia="{inertia}"/>'


def _numbers(values: ArrayLike) -> str:
    """Numbers separated by spaces, with all their digits."""
    return " ".join(repr(float(value)) for value in np.asarray(values))


def simulate_furuta(
    furuta: Furuta,
    q0: ArrayLike,
    qd0: ArrayLike,
    t: ArrayLike,
    u: Signal | None = None,
    timestep: float = 2e-4,
) -> Motion:
    """(theta1, theta2) and rates at the times t [s], from (q0, qd0) at t[0]; like `reduced_ode.solve`.

    `timestep` [s] is the largest step taken. MuJoCo holds the input over a step; it gets the value in the middle,
    which makes the error of a smooth input second order (without input the integrator is fourth order).
    """
    return _simulate(furuta_mjcf(furuta), q0, qd0, t, u, timestep)


def simulate_four_bar(
    four_bar: FourBar,
    theta0: float,
    thetad0: float,
    t: ArrayLike,
    u: Signal | None = None,
    timestep: float = 1e-4,
) -> Motion:
    """World angles of crank, coupler and rocker (times, 3) and their rates, from the crank's state at t[0].

    The angles are those of `FourBar.link_angles` at the start and continuous from there. The loop is as stiff as
    the time-step permits, so the error is second order in it: 1e-6 rad over 2 s of a release at the default.
    """
    from_joints = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    to_joints = np.linalg.inv(from_joints)
    q0 = to_joints @ four_bar.link_angles(theta0)
    qd0 = to_joints @ four_bar.link_slopes(theta0) * thetad0
    # Two steps is the shortest time constant that MuJoCo lets an explicit integrator have.
    joints = _simulate(four_bar_mjcf(four_bar, loop_time=2 * timestep), q0, qd0, t, u, timestep)
    return Motion(joints.q @ from_joints.T, joints.qd @ from_joints.T)


def _simulate(mjcf: str, q0: ArrayLike, qd0: ArrayLike, t: ArrayLike, u: Signal | None, timestep: float) -> Motion:
    """Joint coordinates and rates at the times t, each interval cut into equal steps of at most `timestep`."""
    import mujoco  # noqa: PLC0415  (tests that do not need the engine do not load it)

    model = mujoco.MjModel.from_xml_string(mjcf)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q0, qd0
    q, qd = [data.qpos.copy()], [data.qvel.copy()]
    for start, stop in pairwise(np.asarray(t, dtype=float)):
        # The small reduction keeps round-off in (stop - start) from adding a step to an interval of whole steps.
        steps = ceil((stop - start) / timestep * (1 - 1e-9))
        model.opt.timestep = (stop - start) / steps
        for i in range(steps):
            if u is not None:
                data.ctrl[0] = u(start + (i + 0.5) * model.opt.timestep)
            mujoco.mj_step(model, data)
        q.append(data.qpos.copy())
        qd.append(data.qvel.copy())
    return Motion(np.array(q), np.array(qd))
