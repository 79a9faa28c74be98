"""Robot files by their content: URDF or MJCF."""

from __future__ import annotations

from pathlib import Path

from shadowfit.errors import MechanismError
from shadowfit.files import read_bytes as content_of
from shadowfit.models.errors import ModelFileError
from shadowfit.models.robots.build import Robot, build
from shadowfit.models.robots.flaws import made_possible
from shadowfit.models.robots.markup import Element, parse_markup
from shadowfit.models.robots.mjcf import read_mjcf
from shadowfit.models.robots.urdf import read_urdf
from shadowfit.records import record

DRIVES = ("torque", "position")
SUFFIXES = (".urdf", ".xml", ".mjcf", ".xacro")


@record(frozen=True)
class Reading:
    """How a robot file is to be read."""

    weld: tuple[str, ...] = ()
    """Links with a free joint that are held where they are."""
    repair: bool = False
    """Whether an inertia that no body can have is replaced by the nearest possible one."""
    limits: bool = False
    """Whether end stops are part of the model."""
    drive: str | None = None
    """Whether all driven joints have a torque (``"torque"``) or a position controller (``"position"``) as their input;
    None: as the file says."""


def is_robot_file(path: Path) -> bool:
    """Whether a file is one of a robot, by its name."""
    return path.suffix.lower() in SUFFIXES


def read_robot(path: Path, reading: Reading | None = None, content: bytes | None = None) -> Robot:
    """The robot of a URDF or MJCF file; with ``content``, as if that stood in the file.

    Raises:
        ModelFileError: the file cannot be read, or what is wrong with it, with the line.
    """
    reading = reading or Reading()
    root = parse_markup(read_bytes(path) if content is None else content, str(path))
    if root.tag == "robot":
        description = read_urdf(root)
    elif root.tag == "mujoco":
        description = read_mjcf(root, path, content, repair=reading.repair)
    else:
        raise _unknown(root)
    description.check_numbers()
    robot = description.welded(reading.weld).without_mimics().driven(reading.drive)
    try:
        return build(made_possible(robot, repair=reading.repair), limits=reading.limits)
    except MechanismError as error:  # a number that no machine has, such as a negative damping
        raise description.error(str(error)) from error


def read_bytes(path: Path) -> bytes:
    """The content of a file."""
    try:
        return content_of(path)
    except OSError as error:
        raise ModelFileError(f"cannot be read: {error.strerror or error}", str(path)) from error


def _unknown(root: Element) -> ModelFileError:
    others = {
        "sdf": "; SDF is not read, convert it to URDF or MJCF first",
        "mujocoinclude": "; it is a part of one: name the file that includes it",
    }
    return root.error(f"<{root.tag}> is neither a URDF (<robot>) nor an MJCF (<mujoco>){others.get(root.tag, '')}")


def decode(content: bytes, path: Path) -> str:
    """The text of a file in UTF-8; the mark that some editors put at its start is no part of it."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ModelFileError("not UTF-8 text; save the file as UTF-8", str(path), line) from error
