# %% [markdown]
# # A drone
#
# A quadrotor flies in front of motion capture, with the gyroscope on board; what the four rotors were told is recorded.
# Wanted are its moments of inertia and how much each rotor pulls. The truth here is a differential equation of its own.

# %%
import numpy as np

from shadowfit import Recording, fit, read_model

ARM, TWIST, MASS, GRAVITY = 0.12, 0.016, 0.65, 9.82
ROTORS = {"front": (1, 0, 1), "left": (0, 1, -1), "back": (-1, 0, 1), "right": (0, -1, -1)}

# %% [markdown]
# A rotor pulls along the drone's z axis, beside the centre of mass, and its drag turns the drone about that axis.

# %%
HEAD = """
name = "drone"

[bodies.drone]
mass = 0.65                       # kg, weighed
inertia = { xx = 5e-3, yy = 5e-3, zz = 8e-3 }

[sensors.place]
type = "point_position"
body = "drone"
std = 5e-4                        # m

[sensors.attitude]
type = "body_orientation"
body = "drone"
std = 2e-3                        # rad

[sensors.gyro]
type = "body_rate"
body = "drone"
std = 5e-3                        # rad/s
"""
ROTOR = """
[forces.{name}]
body = "drone"
frame = "body"
force = [0.0, 0.0, 1.0]
torque = [{x}, {y}, {z}]          # N m for each newton
input = "{name}_rotor"

[inputs.{name}_rotor]
unit = "N"
"""
rotors = [ROTOR.format(name=name, x=ARM * y, y=-ARM * x, z=TWIST * turn) for name, (x, y, turn) in ROTORS.items()]
with open("drone.toml", "w") as file:
    file.write(HEAD + "".join(rotors))
mechanism = read_model("drone.toml")

# %% [markdown]
# The flight: Newton's and Euler's equations at 1 kHz, and a controller that follows a wavy path at 100 Hz.

# %%
inertia = np.array([3.7e-3, 4.1e-3, 6.9e-3])
gains = {"front": 0.94, "left": 1.02, "back": 0.97, "right": 1.05}
truth = {f"drone.inertia.{axis}{axis}": value for axis, value in zip("xyz", inertia, strict=True)}
truth |= {f"{name}_rotor.gain": value for name, value in gains.items()}
effect = np.array([[1.0, ARM * y, -ARM * x, TWIST * turn] for x, y, turn in ROTORS.values()]).T


def matrix(quat):
    """Rotation matrix of a unit quaternion (w, x, y, z)."""
    w, v = quat[0], quat[1:]
    cross = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    return np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross


def rate(state, pulls):
    """Time derivative of place, attitude, velocity and rate of turning (these in the drone's axes)."""
    quat, velocity, turning = state[3:7], state[7:10], state[10:]
    wrench = effect @ (np.array(list(gains.values())) * pulls)
    spin = 0.5 * np.array([-quat[1:] @ turning, *(quat[0] * turning + np.cross(quat[1:], turning))])
    up = matrix(quat)[:, 2] * wrench[0] / MASS - np.array([0.0, 0.0, GRAVITY])
    return np.concatenate([velocity, spin, up, (wrench[1:] - np.cross(turning, inertia * turning)) / inertia])


def controller(time, state):
    """Pulls of the rotors that follow a path, and shake the drone so that its inertia can be told."""
    waves = np.sin(np.array([0.9, 1.3, 0.7]) * time) * np.array([0.8, 0.6, 0.3])
    want = 4.0 * (waves - state[:3]) - 3.0 * state[7:10]
    turned = matrix(state[3:7])
    lean = turned.T @ (want + np.array([0.0, 0.0, GRAVITY]))
    shake = 0.6 * np.sin(np.array([7.0, 9.0, 5.0]) * time)
    angles = np.array([-lean[1], lean[0], 0.0]) / GRAVITY + 0.2 * shake
    angles[2] -= np.arctan2(turned[1, 0], turned[0, 0])
    torque = 5e-3 * (120.0 * angles - 18.0 * state[10:])
    return np.linalg.solve(effect, np.array([MASS * lean[2], *torque]))


interval, count, substeps = 0.01, 801, 10
state, rows = np.array([0, 0, 0, 1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), []
for number in range(count):
    pulls = controller(interval * number, state)
    rows.append(np.concatenate([state, pulls]))
    for _ in range(substeps):
        h = interval / substeps
        one = rate(state, pulls)
        two = rate(state + 0.5 * h * one, pulls)
        three = rate(state + 0.5 * h * two, pulls)
        state = state + h / 6.0 * (one + 2.0 * two + 2.0 * three + rate(state + h * three, pulls))
        state[3:7] /= np.linalg.norm(state[3:7])

# %%
table, noise = np.array(rows), np.random.default_rng(0)
quats = table[:, 3:7] + noise.normal(0.0, 1e-3, (count, 4))
columns = dict(
    zip(["place.x", "place.y", "place.z"], (table[:, :3] + noise.normal(0, 5e-4, (count, 3))).T, strict=True)
)
columns |= dict(zip(["attitude.w", "attitude.x", "attitude.y", "attitude.z"], quats.T, strict=True))
columns |= dict(
    zip(["gyro.x", "gyro.y", "gyro.z"], (table[:, 10:13] + noise.normal(0, 5e-3, (count, 3))).T, strict=True)
)
columns |= dict(zip([f"{name}_rotor" for name in ROTORS], table[:, 13:].T, strict=True))
recording = Recording(interval * np.arange(count), columns, name="flight")
estimate = fit(mechanism, recording, list(truth))
print(estimate.summary())

# %%
estimate.plot.machine()
estimate.plot.fit()

# %% [markdown]
# Which numbers share their errors?

# %%
estimate.plot.pairs()
