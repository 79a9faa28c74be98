"""``shadowfit show``: what a model is made of, and the names of its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shadowfit.cli.options import Model, Settings, Weld, apply_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from shadowfit.mechanism import Mechanism
    from shadowfit.models import ModelFile


def show(model: Model, settings: Settings = None, weld: Weld = None) -> None:
    """Show a model's parts, parameter names, units, values, sensors and inputs."""
    from shadowfit import runtime
    from shadowfit.cli import console

    runtime.start_jax()
    from shadowfit.cli.loading import load

    loaded = load(model, weld)
    mechanism = apply_settings(loaded.mechanism, settings or ())
    out = console.output()
    out.print(f"{mechanism.name}: {loaded.description}" if loaded.description else mechanism.name)
    start = _start(loaded, mechanism)
    for table in (_parts(mechanism), _parameters(mechanism), _sensors(mechanism), _inputs(mechanism), start):
        if table.row_count:
            out.print(table)


def _parts(mechanism: Mechanism) -> Table:
    from shadowfit.cli import console

    table = console.table("Parts", "name", "what", "connects")
    for name, what, connects in _part_rows(mechanism):
        table.add_row(name, what, connects)
    return table


def _part_rows(mechanism: Mechanism) -> Iterator[tuple[str, str, str]]:
    for name in mechanism.bodies:
        yield name, "body", ""
    for name, joint in mechanism.joints.items():
        friction = [] if joint.friction is None else [f"{_word(joint.friction)} friction"]
        extras = [*friction, *(f"{law} ({_word(part)})" for law, part in joint.laws.items())]
        yield name, ", ".join([_word(joint.kind), *extras]), f"{joint.parent} – {joint.child}"
    for name, contact in mechanism.contacts.items():
        ends = f"{contact.plane} – {contact.body}" if hasattr(contact, "body") else contact.joint
        yield name, f"contact ({_word(contact)})", ends
    for name, force in mechanism.forces.items():
        yield name, "force", force.body
    for name, shaft in mechanism.shafts.items():
        yield name, "shaft", " + ".join(shaft.ratios)


def _word(part: Any) -> str:
    """The name of a part's class in model files, or of the class itself."""
    from shadowfit.models import vocabulary as v

    words = {**v.JOINT_TYPES, **v.FRICTION_LAWS, **v.AXIS_LAWS, **v.CONTACTS, **v.SENSORS}
    return v.word(part, words) or type(part).__name__


def _parameters(mechanism: Mechanism) -> Table:
    from shadowfit.cli import console

    table = console.table("Parameters", "name", "value", "unit", "", numeric=("value",))
    for name, leaf in mechanism.leaves().items():
        value = mechanism.get(name)
        shown = f"{value:.6g}" if leaf.kind == "number" else " ".join(f"{part:.6g}" for part in value)
        unit = "quaternion" if leaf.kind == "rotation" else mechanism.unit(name)
        table.add_row(name, shown, "" if unit in ("1", "unit") else unit, "" if leaf.tunable else "not fitted")
    return table


def _sensors(mechanism: Mechanism) -> Table:
    from shadowfit.cli import console

    table = console.table("Sensors", "name", "type", "of", "channels", "unit", "std", numeric=("std",))
    for name, sensor in mechanism.sensors.items():
        channels = ", ".join(sensor.channels(name))
        of = getattr(sensor, "joint", getattr(sensor, "body", ""))
        table.add_row(name, _word(sensor), of, channels, sensor.unit(), f"{float(sensor.std):.6g}")
    return table


def _inputs(mechanism: Mechanism) -> Table:
    from shadowfit.cli import console

    table = console.table("Inputs", "name", "unit", "hold", "delay [s]", numeric=("delay [s]",))
    for name, part in mechanism.inputs.items():
        table.add_row(name, part.unit, part.hold, f"{float(part.delay):.6g}")
    return table


def _start(loaded: ModelFile, mechanism: Mechanism) -> Table:
    from shadowfit.cli import console

    numeric = ("position", "speed")
    table = console.table("Start of simulations", "name", *numeric, "unit", numeric=numeric)
    start = loaded.start
    for name in dict.fromkeys((*start.positions, *start.speeds)):
        numbers = (f"{part.get(name, 0.0):.6g}" for part in (start.positions, start.speeds))
        table.add_row(name, *numbers, mechanism.applicable("rad, rad/s | m, m/s", name))
    for name, (position, _) in start.poses.items():
        velocity = start.velocities.get(name, [0.0] * 3)[:3]
        table.add_row(name, *(" ".join(f"{x:.6g}" for x in part) for part in (position, velocity)), "m, m/s")
    return table
