# %% [markdown]
# # An arm from its URDF and a bag
#
# A robot arm with its URDF, and a bag with the joint states and torques of a motion. What does it carry, and how much
# do its joints rub? The answer goes back into a copy of the user's own file.

# %%
from pathlib import Path

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from shadowfit import export, fit, load_result, place, read_model, read_recording, simulate

LINK = """
  <link name="{name}"><inertial><origin xyz="0 0 {centre}"/><mass value="{mass}"/>
    <inertia ixx="{inertia}" iyy="{inertia}" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """
  <joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/><origin xyz="0 0 {height}"/>
    <axis xyz="{axis}"/><limit lower="-3" upper="3" effort="100" velocity="5"/>
    <dynamics damping="0.5" friction="0.5"/></joint>"""
parts = [
    '<robot name="arm">\n  <link name="base"/>',
    LINK.format(name="shoulder", centre=0.1, mass=3.0, inertia=0.02),
    LINK.format(name="upper_arm", centre=0.2, mass=2.5, inertia=0.04),
    LINK.format(name="forearm", centre=0.15, mass=1.2, inertia=0.012),
    JOINT.format(name="pan", parent="base", child="shoulder", height=0.1, axis="0 0 1"),
    JOINT.format(name="lift", parent="shoulder", child="upper_arm", height=0.2, axis="0 1 0"),
    JOINT.format(name="elbow", parent="upper_arm", child="forearm", height=0.4, axis="0 1 0"),
    "\n</robot>\n",
]
Path("arm.urdf").write_text("".join(parts))

# %% [markdown]
# What the robot file does not say stands in a small model file beside it: torques were measured.

# %%
Path("arm.toml").write_text("""
robot = "arm.urdf"
drive = "torque"

[sensors."*_position"]
std = 1e-4

[inputs."*_effort"]
hold = "linear"
""")
mechanism = read_model("arm.toml")

# %% [markdown]
# The true arm carries half a kilogram in its hand, and its joints rub more than the file says. Its controllers, which
# the model of the fit knows nothing of, follow a motion.

# %%
truth = {"forearm.mass": 1.7, "forearm.com.z": 0.19}
truth |= {"pan.viscous": 0.9, "lift.viscous": 1.1, "elbow.viscous": 0.7}
truth |= {"pan.coulomb": 1.2, "lift.coulomb": 1.5, "elbow.coulomb": 0.8}
joints = ("pan", "lift", "elbow")
Path("robot.toml").write_text(
    """robot = "arm.urdf"
drive = "position"
[joints."*".motor]
kp = 400.0
kd = 40.0
"""
    + "".join(f'[sensors.{joint}_torque]\ntype = "joint_torque"\njoint = "{joint}"\n' for joint in joints)
)
robot = read_model("robot.toml").set(truth)


def wanted(joint):
    """A motion of several sines."""
    rates = 2.0 * np.pi * np.array([0.11, 0.23, 0.37, 0.59]) * (1.0 + 0.1 * joint)
    return lambda time: float(0.3 * np.sum(np.sin(rates * time) * np.array([1.0, 0.8, 0.6, 0.4])))


targets = {f"{joint}_target": wanted(number) for number, joint in enumerate(joints)}
run = simulate(robot, place(robot), targets, timestep=0.01, steps=1500)

# %% [markdown]
# Joint states go into a bag of ROS 2, with encoders of a tenth of a milliradian and torques of 0.05 N m.

# %%
noise = np.random.default_rng(0)
position = np.column_stack([run.readings[f"{joint}_position"] for joint in joints])
torque = np.column_stack([run.readings[f"{joint}_torque"] for joint in joints])
position, torque = position + noise.normal(0.0, 1e-4, position.shape), torque + noise.normal(0.0, 0.05, torque.shape)
types = get_typestore(Stores.LATEST)
Time, Header, JointState = (
    types.types[f"{package}/msg/{name}"]
    for package, name in (("builtin_interfaces", "Time"), ("std_msgs", "Header"), ("sensor_msgs", "JointState"))
)
with Writer("run", version=9, storage_plugin=StoragePlugin.MCAP) as bag:
    topic = bag.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=types)
    for number, (angles, forces) in enumerate(zip(position, torque, strict=True)):
        at = 1_700_000_000_000_000_000 + 10_000_000 * number
        header = Header(stamp=Time(sec=at // 10**9, nanosec=at % 10**9), frame_id="")
        state = JointState(header=header, name=list(joints), position=angles, velocity=np.zeros(0), effort=forces)
        bag.write(topic, at, types.serialize_cdr(state, "sensor_msgs/msg/JointState"))

# %% [markdown]
# Joints are found by their names. Free are friction and the forearm, whose inertia about its centre stays the file's.

# %%
recording = read_recording("run")
print(list(recording.channels))
estimate = fit(mechanism, recording, list(truth))
print(estimate.summary())

# %%
estimate.plot.machine()
estimate.plot.forces("speed")

# %% [markdown]
# The numbers into a copy of the URDF: nothing else in it changes.

# %%
estimate.save("result")
made = export(load_result("result"), "arm.urdf")
before, after = (Path(path).read_text().splitlines() for path in ("arm.urdf", made.paths[0]))
for old, new in zip(before, after, strict=True):
    if old != new:
        print(f"- {old.strip()}\n+ {new.strip()}")
