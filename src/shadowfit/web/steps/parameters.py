"""Step three: which numbers of the machine to estimate, and what is known of them."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
from nicegui import ui

from shadowfit.errors import ShadowfitError
from shadowfit.estimation import Free
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.mechanism import Mechanism
from shadowfit.projects import commands
from shadowfit.projects.project import FreeNumber
from shadowfit.web.desk import Desk
from shadowfit.web.parts import CommandLine, Update, machine_of

# Rows on the page at once; a filter finds the others.
MOST_ROWS = 80
BOXES = {"start": "start", "lower": "at least", "upper": "at most", "prior": "known to ±"}


async def build(desk: Desk) -> None:
    """A table of the machine's numbers with boxes to tick."""
    machine = await machine_of(desk)
    if machine is None:
        return
    mechanism = machine.mechanism
    command = CommandLine(lambda: commands.check(desk.project))
    _spell_out(desk, mechanism)
    names = [name for name, leaf in mechanism.leaves().items() if leaf.tunable]

    @ui.refreshable
    def rows() -> None:
        pattern = (box.value or "").lower()
        wanted = [
            name for name in names if name in desk.project.free or (pattern in name.lower() and not ticked_only.value)
        ]
        for part, of_part in itertools.groupby(wanted[:MOST_ROWS], key=lambda name: name.partition(".")[0]):
            ui.label(part).classes("part")
            for name in of_part:
                _row(desk, mechanism, name, command.update)
        if len(wanted) > MOST_ROWS:
            ui.label(f"{len(wanted) - MOST_ROWS} more: filter by a part of their names").classes("soft")

    ui.label(
        "Tick what the fit is to find. Start and bounds are the model's unless you give others; what you know of a "
        "number beforehand is a standard deviation around its start."
    ).classes("soft")
    with ui.row().classes("items-center w-full"):
        box = ui.input("Filter by name", on_change=lambda _: rows.refresh()).props("dense clearable debounce=300")
        box.classes("filter")
        ticked_only = ui.switch("ticked ones only", on_change=lambda _: rows.refresh())
    with ui.element("div").classes("numbers"):
        rows()
    command.show()


def _spell_out(desk: Desk, mechanism: Mechanism) -> None:
    """Patterns of a project's file as the names that they stand for."""
    try:
        spelled = {name: number for key, number in desk.project.free.items() for name in mechanism.expand(key)}
    except ShadowfitError as error:
        ui.notify(str(error), type="negative")
        return
    if spelled != desk.project.free:
        desk.change(free=spelled)


def _row(desk: Desk, mechanism: Mechanism, name: str, then: Update) -> None:
    unit = "as a quaternion" if mechanism.leaf(name).kind == "rotation" else mechanism.unit(name)
    value = np.atleast_1d(mechanism.get(name))

    @ui.refreshable
    def fields() -> None:
        number = desk.project.free.get(name)
        with ui.row().classes("number items-center w-full"):
            ui.checkbox(name, value=number is not None, on_change=lambda event: tick(event.value)).classes("name")
            ui.label(f"{' '.join(f'{part:.6g}' for part in value)} {'' if unit == '1' else unit}").classes("value")
            if number is not None and mechanism.leaf(name).kind == "number":
                _boxes(number, change)
        complaint = "" if number is None else _complaint(mechanism, name, number)
        if complaint:
            ui.label(complaint).classes("verdict red")

    def tick(on: bool) -> None:
        others = {key: number for key, number in desk.project.free.items() if key != name}
        desk.change(free={**others, name: FreeNumber()} if on else others)
        fields.refresh()
        then()

    def change(field: str, given: Any) -> None:
        changed = dataclasses.replace(desk.project.free[name], **{field: given})
        before = _complaint(mechanism, name, desk.project.free[name])
        desk.change(free={**desk.project.free, name: changed})
        # Boxes that are typed in stay; only what is said below them changes.
        if before or _complaint(mechanism, name, changed):
            fields.refresh()
        then()

    with ui.element("div").classes("w-full"):
        fields()


def _boxes(number: FreeNumber, change: Any) -> None:
    for field, text in BOXES.items():
        box = ui.number(text, value=getattr(number, field)).props("dense debounce=500").classes("box")
        box.on_value_change(lambda event, field=field: change(field, event.value))
    ui.checkbox("each recording its own", value=number.each, on_change=lambda event: change("each", event.value))


def _complaint(mechanism: Mechanism, name: str, number: FreeNumber) -> str:
    """What is wrong with start, bounds and prior; nothing, most of the time."""
    try:
        parameter_set(mechanism, {name: Free(number.start, number.lower, number.upper, number.prior, number.each)})
    except ShadowfitError as error:
        return str(error)
    return ""
