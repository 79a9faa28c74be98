"""Bags of ROS 1 and 2 and MCAP: joint states by name, other messages by field, times, several topics, what is wrong."""

import numpy as np
import pytest

from shadowfit.errors import RecordingError
from shadowfit.recordings import read_recording
from shadowfit.recordings.extras import need

rosbag1 = pytest.importorskip("rosbags.rosbag1")
rosbag2 = pytest.importorskip("rosbags.rosbag2")
typesys = pytest.importorskip("rosbags.typesys")

COUNT, INTERVAL = 5, 10_000_000  # messages, nanoseconds
START = 1_700_000_000_000_000_000  # of today's size: seconds as floats would lose the digits
JOINTS = ("hip", "knee")


def store(ros1: bool):
    return typesys.get_typestore(typesys.Stores.ROS1_NOETIC if ros1 else typesys.Stores.LATEST)


def joint_state(types, nanoseconds: int, values: np.ndarray, effort: bool, stamped: bool):
    stamp = types.types["builtin_interfaces/msg/Time"](
        sec=nanoseconds // 10**9 if stamped else 0, nanosec=nanoseconds % 10**9 if stamped else 0
    )
    fields = {"seq": 0} if "seq" in types.types["std_msgs/msg/Header"].__annotations__ else {}
    header = types.types["std_msgs/msg/Header"](stamp=stamp, frame_id="", **fields)
    return types.types["sensor_msgs/msg/JointState"](
        header=header,
        name=list(JOINTS),
        position=values,
        velocity=10.0 * values,
        effort=100.0 * values if effort else np.zeros(0),
    )


def write_bag(path, kind: str, *, effort: bool = True, stamped: bool = True) -> None:
    """Joint states every 10 ms, and between them targets on a topic of their own."""
    ros1 = kind == "bag"
    types = store(ros1)
    if ros1:
        writer = rosbag1.Writer(path)
    else:
        plugin = rosbag2.StoragePlugin.MCAP if kind == "mcap" else rosbag2.StoragePlugin.SQLITE3
        writer = rosbag2.Writer(path, version=9, storage_plugin=plugin)
    pack = types.serialize_ros1 if ros1 else types.serialize_cdr
    with writer:
        states = writer.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=types)
        targets = writer.add_connection("/arm/target", "geometry_msgs/msg/Point", typestore=types)
        for k in range(COUNT):
            time = START + k * INTERVAL
            message = joint_state(types, time, np.array([0.1, -0.2]) * k, effort, stamped)
            # Messages arrive late, by a time that varies; their stamps do not.
            writer.write(states, time + 1000 * k**2, pack(message, "sensor_msgs/msg/JointState"))
            point = types.types["geometry_msgs/msg/Point"](x=float(k), y=2.0 * k, z=0.0)
            writer.write(targets, time + INTERVAL // 2, pack(point, "geometry_msgs/msg/Point"))


@pytest.fixture(params=["bag", "db3", "mcap"])
def bag(request, tmp_path):
    path = tmp_path / ("run.bag" if request.param == "bag" else f"run_{request.param}")
    write_bag(path, request.param)
    return path


def test_joint_states_become_columns_of_joints(bag) -> None:
    recording = read_recording(bag)
    np.testing.assert_allclose(recording.time, 0.01 * np.arange(COUNT), rtol=0, atol=1e-12)
    assert list(recording.channels) == [f"{j}.{q}" for q in ("position", "velocity", "effort") for j in JOINTS]
    np.testing.assert_allclose(recording.channels["knee.velocity"], -2.0 * np.arange(COUNT), rtol=1e-14)


def test_several_topics_keep_their_own_times(bag) -> None:
    recording = read_recording(bag, topics=["/joint_states", "/arm/target"], channels={"target": "arm.target.x"})
    np.testing.assert_allclose(recording.time, 0.005 * np.arange(2 * COUNT), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(recording.channels["target"][1::2], np.arange(COUNT))
    assert np.isnan(recording.channels["target"][::2]).all()
    assert np.isnan(recording.channels["hip.position"][1::2]).all()


def test_a_bare_file_of_a_bag_is_enough(tmp_path) -> None:
    write_bag(tmp_path / "run", "db3")
    alone = next((tmp_path / "run").glob("*.db3")).rename(tmp_path / "alone.db3")
    assert len(read_recording(alone)) == COUNT


def test_what_is_not_known_is_left_out_and_time_is_that_of_arrival_without_stamps(tmp_path) -> None:
    write_bag(tmp_path / "run.bag", "bag", effort=False, stamped=False)
    recording = read_recording(tmp_path / "run.bag")
    assert [name for name in recording.channels if name.endswith("effort")] == []
    np.testing.assert_allclose(np.diff(recording.time), 0.01 + 1e-6 * (2 * np.arange(COUNT - 1) + 1), atol=1e-9)


def write_states(path, messages) -> None:
    """A bag of joint states: arrival and stamp [ns], names, positions."""
    types = store(ros1=True)
    header, stamp = types.types["std_msgs/msg/Header"], types.types["builtin_interfaces/msg/Time"]
    with rosbag1.Writer(path) as writer:
        states = writer.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=types)
        for arrival, time, names, positions in messages:
            message = types.types["sensor_msgs/msg/JointState"](
                header=header(seq=0, stamp=stamp(sec=time // 10**9, nanosec=time % 10**9), frame_id=""),
                name=list(names),
                position=np.array(positions, float),
                velocity=np.zeros(0),
                effort=np.zeros(0),
            )
            writer.write(states, arrival, types.serialize_ros1(message, "sensor_msgs/msg/JointState"))


def write_trajectories(path, messages) -> None:
    """A bag of trajectories: arrival [ns], and for each point the time from the start [ns] and the positions."""
    types = store(ros1=False)
    kinds = {key: types.types[f"{key[0]}/msg/{key[1]}"] for key in TRAJECTORY}
    header, stamp, duration, point, trajectory = kinds.values()
    none = np.zeros(0)
    writer = rosbag2.Writer(path, version=9, storage_plugin=rosbag2.StoragePlugin.MCAP)
    with writer:
        topic = writer.add_connection("/arm/path", "trajectory_msgs/msg/JointTrajectory", typestore=types)
        for arrival, points in messages:
            rows = [
                point(
                    positions=np.array(positions, float),
                    velocities=2.0 * np.array(positions, float),
                    accelerations=none,
                    effort=none,
                    time_from_start=duration(sec=time // 10**9, nanosec=time % 10**9),
                )
                for time, positions in points
            ]
            now = header(stamp=stamp(sec=0, nanosec=0), frame_id="")
            message = trajectory(header=now, joint_names=list(JOINTS), points=rows)
            writer.write(topic, arrival, types.serialize_cdr(message, "trajectory_msgs/msg/JointTrajectory"))


TRAJECTORY = (
    *(("std_msgs", "Header"), ("builtin_interfaces", "Time"), ("builtin_interfaces", "Duration")),
    *(("trajectory_msgs", "JointTrajectoryPoint"), ("trajectory_msgs", "JointTrajectory")),
)


def test_a_single_trajectory_is_all_its_points(tmp_path) -> None:
    points = [(k * INTERVAL, [0.1 * k, -0.2 * k]) for k in range(200)]
    write_trajectories(tmp_path / "run", [(START, points)])
    recording = read_recording(tmp_path / "run", topics=["/arm/path"])
    np.testing.assert_allclose(recording.time, 0.01 * np.arange(200), rtol=0, atol=1e-9)
    np.testing.assert_allclose(recording.channels["arm.path.knee.position"], -0.2 * np.arange(200))
    np.testing.assert_allclose(recording.channels["arm.path.hip.velocity"], 0.2 * np.arange(200))
    assert not any("acceleration" in name or "time_from_start" in name for name in recording.channels)


def test_a_trajectory_holds_until_the_next_one_begins(tmp_path) -> None:
    first, second = ([(k * INTERVAL, [level, level]) for k in range(20)] for level in (1.0, 2.0))
    write_trajectories(tmp_path / "run", [(START, first), (START + 10 * INTERVAL, second)])
    recording = read_recording(tmp_path / "run", topics=["/arm/path"])
    np.testing.assert_allclose(recording.time, 0.01 * np.arange(30), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(recording.channels["arm.path.hip.position"], np.repeat([1.0, 2.0], (10, 20)))


LATE = 2_000_000  # nanoseconds between stamp and arrival


def states(order, stamp=lambda k: START + k * INTERVAL):
    """Messages of one joint at k intervals, in an order of arrival; the position is k."""
    return [(START + i * INTERVAL + LATE, stamp(k), ["hip"], [k]) for i, k in enumerate(order)]


def test_a_stamp_that_was_left_at_zero_is_that_of_the_arrival_less_the_usual_delay(tmp_path) -> None:
    write_states(tmp_path / "run.bag", states(range(20), lambda k: 0 if k in (0, 7) else START + k * INTERVAL))
    recording = read_recording(tmp_path / "run.bag")
    np.testing.assert_allclose(recording.time, 0.01 * np.arange(20), rtol=0, atol=1e-9)


def test_messages_that_overtake_each_other_come_in_the_order_of_their_stamps(tmp_path) -> None:
    order = list(range(20))
    order[5], order[6], order[12], order[14] = 6, 5, 14, 12
    write_states(tmp_path / "run.bag", states(order))
    recording = read_recording(tmp_path / "run.bag")
    np.testing.assert_array_equal(recording.channels["hip.position"], np.arange(20))


def test_a_clock_that_was_set_back_is_not_used_and_that_is_said(tmp_path) -> None:
    write_states(tmp_path / "run.bag", states(range(20), lambda k: START + (k if k < 10 else k - 8) * INTERVAL))
    recording = read_recording(tmp_path / "run.bag")
    np.testing.assert_allclose(recording.time, 0.01 * np.arange(20), rtol=0, atol=1e-9)
    assert any("/joint_states: stamps of messages" in text and "go back" in text for text in recording.warnings)


def test_drivers_that_share_a_topic_share_its_rows(tmp_path) -> None:
    """Joints in another order in each message, from two drivers at the same times, and some messages twice."""
    messages = []
    for k in range(20):
        time, names = START + k * INTERVAL, ["hip", "knee"] if k % 2 else ["knee", "hip"]
        values = {"hip": k, "knee": -k}
        messages.append((time + LATE, time, names, [values[name] for name in names]))
        messages.append((time + 2 * LATE, time, ["jaw"], [10 * k]))
        messages += [messages[-1]] if k == 3 else []
    write_states(tmp_path / "run.bag", messages)
    recording = read_recording(tmp_path / "run.bag")
    for joint, factor in (("hip", 1), ("knee", -1), ("jaw", 10)):
        np.testing.assert_array_equal(recording.channels[f"{joint}.position"], factor * np.arange(20))
    assert recording.warnings == ("/joint_states: messages with the time of the one before, left out: 1",)


def test_joints_without_names_are_numbered(tmp_path) -> None:
    write_states(
        tmp_path / "run.bag", [(time, stamp, [], [k, -k]) for k, (time, stamp, _, _) in enumerate(states(range(9)))]
    )
    recording = read_recording(tmp_path / "run.bag", channels={"theta": "position[1]"})
    np.testing.assert_array_equal(recording.channels["theta"], -np.arange(9))


def test_progress_counts_all_messages_that_are_read(bag) -> None:
    seen: list[tuple[int, int]] = []
    read_recording(bag, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (COUNT, COUNT)


def test_mistakes_are_named(tmp_path, bag) -> None:
    with pytest.raises(RecordingError, match=r"no topic '/joint_state'; did you mean '/joint_states'.*/arm/target"):
        read_recording(bag, topics=["/joint_state"])
    broken = tmp_path / "broken.db3"
    broken.write_bytes(b"SQLite format 3\0 and then nothing")
    with pytest.raises(RecordingError, match=r"broken.db3: cannot be read as a bag"):
        read_recording(broken)
    with pytest.raises(RecordingError, match="only bags have topics"):
        read_recording(tmp_path / "run.csv", topics=["/joint_states"])


def test_a_missing_package_names_the_command() -> None:
    with pytest.raises(RecordingError, match=r'run.x: .*"no_such_package|pip install "shadowfit\[bags\]"'):
        need("no_such_package.inside", "bags", "run.x")


@pytest.mark.data
@pytest.mark.parametrize("arm", ["ur10", "panda"])
def test_bags_without_definitions_are_their_tables(data_dir, arm) -> None:
    bag, table = (
        read_recording(data_dir / f"arm_{arm}" / f"{arm}_exciting{end}") for end in ("_trajectory.db3", ".csv")
    )
    np.testing.assert_allclose(bag.time, table.time, rtol=0, atol=1e-6)
    assert set(bag.channels) == set(table.channels)
    for name in table.channels:
        np.testing.assert_allclose(bag.channels[name], table.channels[name], rtol=0, atol=1e-6)
