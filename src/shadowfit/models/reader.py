"""From the text of a model file to a mechanism.

Every part's table is read by the keys that its class declares. What is added here are the notations that are easier to
write than the classes' own numbers: a joint by its axis and zero position, a plane by its normal, a sensor's noise by
its resolution.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from shadowfit.errors import nearest
from shadowfit.geometry import rotations
from shadowfit.mechanism import (
    Body,
    Compliance,
    Gravity,
    Input,
    Joint,
    Mechanism,
    PlaneContact,
    Ratio,
    Shaft,
    Turns,
    Wrench,
)
from shadowfit.mechanism.joint import WORLD
from shadowfit.mechanism.leaves import Parts
from shadowfit.models import notation
from shadowfit.models.expressions import ExpressionError, parse_expression
from shadowfit.models.places import parse
from shadowfit.models.start import Start
from shadowfit.models.table import Table
from shadowfit.models.vocabulary import AXIS_LAWS, CONTACTS, IMPLIED, SENSORS, Key, keys, variants
from shadowfit.records import record

GROUPS = ("bodies", "joints", "contacts", "forces", "shafts", "sensors", "inputs")
RESERVED = (WORLD, "gravity")

Names = Mapping[str, tuple[str, ...]]
"""Which parts a key may refer to: ``parent`` → names of bodies, ..."""


@record(frozen=True)
class Rating:
    """What a joint may do, as a robot file states it; None: it does not say."""

    position: tuple[float, float] | None = None
    """[rad, m]."""
    speed: float | None = None
    """[rad/s, m/s]."""
    effort: float | None = None
    """Of what drives it [N m, N]."""


@record(frozen=True)
class ModelFile:
    """A model file, read."""

    mechanism: Mechanism
    start: Start
    """Where simulations start unless told otherwise."""
    description: str
    written: str | None
    """The text that was read; None: of a robot file, whose parameters have other names."""
    source: str
    notes: tuple[str, ...] = ()
    """What a reader should know of a robot file: what was assumed, and what of it is not in the model."""
    derived: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Quantities to report of a fit: name → expression of the model's numbers."""
    errors: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """What is known of errors: fields of an :class:`~shadowfit.estimation.ErrorModel`."""
    ratings: Mapping[str, Rating] = dataclasses.field(default_factory=dict)
    """Joint → what a robot file says it may do."""

    @functools.cached_property
    def text(self) -> str:
        """A model file that says all of this; of a robot file, it takes longer to write than the file to read."""
        from shadowfit.models.writer import format_model  # noqa: PLC0415  (it reads what it has written)

        if self.written is not None:
            return self.written
        return format_model(self.mechanism, start=self.start, description=self.description, derived=self.derived)


# Models that were read last, by text and name; values that do not change.
KEPT = 8
_READ: dict[tuple[str, str], ModelFile] = {}


def parse_model(text: str, source: str = "model", name: str = "mechanism") -> ModelFile:
    """Read the text of a model file.

    Args:
        text: TOML, see docs/models.md.
        source: what to call the file in messages.
        name: name of the mechanism where the file states none.

    Raises:
        ModelFileError: anything that is wrong with the text, with its line.
    """
    values, places = parse(text, source)
    return model_of(Table(values, (), places, source), text, name)


def model_of(document: Table, text: str, name: str) -> ModelFile:
    """The same of a text that has been taken apart."""
    title = document.text("name") if "name" in document else name
    # The same text is read when a fit begins, when its result is written, and for the report.
    model = _READ.get((text, title))
    if model is None:
        model = _READ[text, title] = read_document(document, name, text)
        for key in list(_READ)[:-KEPT]:
            _READ.pop(key, None)
    return dataclasses.replace(model, source=document.source)


def read_document(document: Table, name: str, text: str) -> ModelFile:
    """The model of a whole document; ``name`` and ``text`` as in :func:`parse_model`."""
    document.allow(("name", "description", *GROUPS, "gravity", "state", "derived", "errors"))
    groups = {group: document.tables(group) for group in GROUPS}
    _check_names(groups)
    bodies, inputs = tuple(groups["bodies"]), tuple(groups["inputs"])
    names = {"parent": (*bodies, WORLD), "child": (*bodies, WORLD), "plane": (*bodies, WORLD), "body": bodies}
    names["input"] = inputs
    joints = {name: _joint(table, names) for name, table in groups["joints"].items()}
    names["joint"] = tuple(name for name, joint in joints.items() if joint.kind.axis_kind is not None)
    with document.blamed():
        mechanism = Mechanism(
            {name: _part(Body, table, names) for name, table in groups["bodies"].items()},
            joints,
            contacts={name: _contact(table, names) for name, table in groups["contacts"].items()},
            forces={name: _part(Wrench, table, names) for name, table in groups["forces"].items()},
            shafts={name: _shaft(table, names) for name, table in groups["shafts"].items()},
            sensors={name: _sensor(table, names, joints) for name, table in groups["sensors"].items()},
            inputs={name: _part(Input, table, names) for name, table in groups["inputs"].items()},
            gravity=_part(Gravity, document.table("gravity"), names) if "gravity" in document else None,
            name=document.text("name") if "name" in document else name,
        )
    description = document.text("description") if "description" in document else ""
    start, derived, errors = _start(document, names), _derived(document), _errors(document, mechanism)
    return ModelFile(mechanism, start, description, text, document.source, derived=derived, errors=errors)


def _check_names(groups: Mapping[str, Mapping[str, Table]]) -> None:
    seen: set[str] = set()
    for name, table in (item for parts in groups.values() for item in parts.items()):
        if not name.isidentifier():
            raise table.error(f"{name!r} is not a valid name; use letters, digits and underscores")
        if name in seen or name in RESERVED:
            raise table.error(
                f"the name {name!r} is {'used twice' if name in seen else 'reserved'}; choose another one"
            )
        seen.add(name)


def _part(part: type, table: Table, names: Names, extra: Iterable[str] = ()) -> Any:
    """A part of a class from its table; ``extra`` keys are allowed besides those of the class."""
    _allow(part, table, extra)
    return _build(part, table, names)


def _allow(part: type, table: Table, extra: Iterable[str] = ()) -> None:
    """Raise at the first key that a part of a class cannot have."""
    classes = [part, *(choice for choice in _choose(part, table).values() if choice is not None)]
    selectors = [selector for selector, _ in variants(part).values()]
    table.allow((*selectors, *(key.name for each in classes for key in keys(each)), *extra), _hints(part))


def _build(part: type, table: Table, names: Names, **given: Any) -> Any:
    """A part of a class from a table whose keys have been looked at; fields that are ``given`` are not read."""
    for field, choice in _choose(part, table).items():
        given[field] = None if choice is None else choice(**_fields(choice, table, names, {}))
    made = part(**_fields(part, table, names, given))
    if hasattr(made, "check"):
        with table.blamed():
            made.check(table.path[-1])
    return made


def _choose(part: type, table: Table) -> dict[str, type | None]:
    """Class of each field that may hold several: None where the class leaves it out and the file does too."""
    chosen: dict[str, type | None] = {}
    defaults = {field.name: field.default for field in dataclasses.fields(part)}
    for field, (selector, choices) in variants(part).items():
        absent = selector not in table and defaults[field] is None
        chosen[field] = None if absent else choices[table.text(selector, choices)]
    return chosen


def _hints(part: type) -> dict[str, str]:
    """For keys that only some choice of class would allow, which choice that is."""
    owners: dict[str, list[str]] = {}
    for selector, choices in variants(part).values():
        for word, choice in choices.items():
            for key in keys(choice):
                owners.setdefault(key.name, []).append(f'{selector} = "{word}"')
    return {name: f"it needs {' or '.join(choices)}" for name, choices in owners.items()}


def _fields(part: type, table: Table, names: Names, given: Mapping[str, Any]) -> dict[str, Any]:
    values = dict(given)
    for key in keys(part):
        if key.name not in values and (key.name in table or key.required):
            values[key.name] = _value(key, table, names)
        elif key.kind == "text" and key.name in names and key.name not in values and key.default is not None:
            _check_reference(key.name, key.default, table, names)
    return values


def _value(key: Key, table: Table, names: Names) -> Any:
    if key.kind == "number":
        return notation.number(table, key.name, key.unit, lower=key.lower, infinite=key.infinite)
    if key.kind == "vector":
        return notation.vector(table, key.name, key.unit)
    if key.kind == "rotation":
        return notation.rotation(table, key.name)
    if key.kind == "flag":
        return table.flag(key.name)
    if key.part is not None:
        return _part(key.part, table.table(key.name), names)
    text = table.text(key.name, key.choices)
    _check_reference(key.name, text, table, names)
    return text


def _check_reference(key: str, name: str, table: Table, names: Names) -> None:
    key_of = "input" if key.endswith("_input") else key
    if key_of in names and name not in names[key_of]:
        what = {"input": "an input", "joint": "a joint with a free axis"}.get(key_of, "a body")
        raise table.error(f"{table.name(key)} is {name!r}, which is not {what}{nearest(name, names[key_of])}", key)


def _of_type(words: Mapping[str, type], table: Table, default: str | None = None) -> type:
    """The class that the key ``type`` names."""
    if "type" in table:
        return words[table.text("type", words)]
    if default is None:
        raise table.error(f"{table.name('type')} is missing; there are: {', '.join(words)}")
    return words[default]


def _joint(table: Table, names: Names) -> Joint:
    known = {key.name for part in (Joint, *_options(Joint)) for key in keys(part)}
    laws = {
        name: table.table(name)
        for name, value in table.values.items()
        if name not in known and isinstance(value, dict) and ("type" in value or not _misspelt(name, known))
    }
    _allow(Joint, table, ("axis", "zero_rotation", *laws))
    given = _joint_frames(table)
    if "compliance" in table and not isinstance(table["compliance"], dict):
        both = notation.number(table, "compliance", "m/N, rad/(N m)", lower=0.0)
        given["compliance"] = Compliance(both, both)
    rotary = getattr(_choose(Joint, table)["kind"], "axis_kind", None) != "translation"
    made = {name: _law(name, law, names, rotary) for name, law in laws.items()}
    return _build(Joint, table, names, laws=made, **given)


def _misspelt(name: str, known: Iterable[str]) -> bool:
    """Whether the name of a table is nearly one that a joint has; any other table of a joint is a law of its axis."""
    return name not in AXIS_LAWS and bool(difflib.get_close_matches(name, known, n=1))


def _options(part: type) -> list[type]:
    return [choice for _, choices in variants(part).values() for choice in choices.values()]


def _law(name: str, table: Table, names: Names, rotary: bool) -> Any:
    if not name.isidentifier():
        raise table.error(f"{name!r} is not a valid name; use letters, digits and underscores")
    law = _of_type(AXIS_LAWS, table, name if name in AXIS_LAWS else None)
    made = _part(law, table, names, ("type",))
    return dataclasses.replace(made, rotary=rotary) if (law, "rotary") in IMPLIED else made


def _joint_frames(table: Table) -> dict[str, Any]:
    """The two attachment rotations, from the axis and the child's rotation at zero, or as they are."""
    raw = [key for key in ("parent_rotation", "child_rotation") if key in table]
    if raw:
        for key in ("axis", "zero_rotation"):
            if key in table:
                raise table.error(f"{table.name(key)} and {raw[0]} say the same; leave one out", key)
        return {}
    needs_axis = getattr(_choose(Joint, table)["kind"], "axis_kind", None) is not None
    axis = notation.direction(table, "axis") if needs_axis or "axis" in table else np.array([1.0, 0.0, 0.0])
    zero = notation.rotation(table, "zero_rotation") if "zero_rotation" in table else np.array(notation.IDENTITY)
    parent, child = notation.joint_frames(axis, zero)
    return {"parent_rotation": parent, "child_rotation": child}


def _contact(table: Table, names: Names) -> Any:
    contact = _of_type(CONTACTS, table)
    if contact is not PlaneContact:
        return _part(contact, table, names, ("type",))
    _allow(contact, table, ("type", "normal"))
    if "plane_rotation" in table:
        if "normal" in table:
            raise table.error(f"{table.name('normal')} and plane_rotation say the same; leave one out", "normal")
        return _build(contact, table, names)
    normal = notation.direction(table, "normal") if "normal" in table else np.array([0.0, 0.0, 1.0])
    return _build(contact, table, names, plane_rotation=rotations.from_axes(normal))


def _sensor(table: Table, names: Names, joints: Mapping[str, Joint]) -> Any:
    sensor = _of_type(SENSORS, table)
    ratios = _ratios(table, names) if (sensor, "ratios") in IMPLIED else {}
    _allow(sensor, table, ("type", "resolution", *ratios))
    given: dict[str, Any] = {"ratios": Parts(ratios)} if ratios else {}
    if "resolution" in table:
        unit = next(key.unit for key in keys(sensor) if key.name == "std")
        resolution = notation.number(table, "resolution", unit, lower=0.0)
        # Rounding to a grid of that step; a standard deviation that is stated counts instead.
        if "std" not in table:
            given["std"] = resolution / math.sqrt(12.0)
    made = _build(sensor, table, names, **given)
    if (sensor, "rotary") not in IMPLIED:
        return made
    return dataclasses.replace(made, rotary=joints[made.joint].kind.axis_kind == "rotation")


def _shaft(table: Table, names: Names) -> Shaft:
    ratios = _ratios(table, names, Turns)
    _allow(Shaft, table, ratios)
    return _build(Shaft, table, names, ratios=Parts(ratios))


def _ratios(table: Table, names: Names, part: type = Ratio) -> dict[str, Any]:
    """Transmission ratios of a motor's sensor or shaft, by joint: ``wrist.ratio = 45``."""
    ratios = {
        name: _part(part, table.table(name), names)
        for name, value in table.values.items()
        if name in names["joint"] and isinstance(value, dict)
    }
    if not ratios:
        joint = next(iter(names["joint"]), "JOINT")
        raise table.error(f"{table.name()} needs the ratio of at least one joint, such as {joint}.ratio = 50")
    return ratios


def _errors(document: Table, mechanism: Mechanism) -> dict[str, Any]:
    """The table ``errors``: forces by joint, readings by sensor, and the criterion."""
    if "errors" not in document:
        return {}
    table = document.table("errors")
    table.allow(("forces", "sensors", "criterion"))
    found: dict[str, Any] = {"criterion": table.text("criterion")} if "criterion" in table else {}
    for key, known in (("forces", mechanism.joints), ("sensors", mechanism.sensors)):
        if key in table:
            own = table.table(key)
            own.allow(known)
            found[key] = dict(own.values)
    return found


def _derived(document: Table) -> dict[str, str]:
    """Expressions of the table ``derived``, each of a form that can be evaluated."""
    table = document.table("derived") if "derived" in document else None
    texts = {} if table is None else {name: table.text(name) for name in table.values}
    for name, text in texts.items():
        try:
            parse_expression(text)
        except ExpressionError as error:
            raise document.error(str(error), "derived", name) from error
    return texts


def _start(document: Table, names: Names) -> Start:
    start = Start()
    for name, table in document.tables("state").items():
        if name in names["joint"]:
            start = _joint_start(start, name, table)
        elif name in names["body"]:
            start = _body_start(start, name, table)
        else:
            valid = (*names["joint"], *names["body"])
            raise table.error(f"{table.name()} is not a joint with a free axis and not a body{nearest(name, valid)}")
    return start


def _joint_start(start: Start, name: str, table: Table) -> Start:
    table.allow(("position", "speed"))
    position = {name: notation.number(table, "position", "rad | m")} if "position" in table else {}
    speed = {name: notation.number(table, "speed", "rad/s | m/s")} if "speed" in table else {}
    return start.with_joints(position, speed)


def _body_start(start: Start, name: str, table: Table) -> Start:
    table.allow(("position", "orientation", "velocity", "angular_velocity"))
    position = notation.vector(table, "position", "m") if "position" in table else np.zeros(3)
    turn = notation.rotation(table, "orientation") if "orientation" in table else np.array(notation.IDENTITY)
    velocity = [
        notation.vector(table, key, unit) if key in table else np.zeros(3)
        for key, unit in (("velocity", "m/s"), ("angular_velocity", "rad/s"))
    ]
    return dataclasses.replace(
        start,
        poses={**start.poses, name: (position, turn)},
        velocities={**start.velocities, name: np.concatenate(velocity)},
    )
