"""Step one: which machine, and what it looks like."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from nicegui import ui

from shadowfit.models import library
from shadowfit.models.robots.read import is_robot_file
from shadowfit.projects import commands
from shadowfit.projects.uploads import kept
from shadowfit.web.demonstration import demonstrate
from shadowfit.web.desk import Desk, Machine
from shadowfit.web.parts import CommandLine, Drawing, frame, in_background, machine_of, upload

WELCOME = (
    "Six steps lead from a machine and its recordings to calibrated numbers with error bars: choose the machine, drop "
    "the recordings, tick what is to be found, check that they belong together, fit, and read the result. Everything "
    "stays on this computer, in the project's folder."
)


async def build(desk: Desk) -> None:
    """A built-in machine or a file of one's own, drawn in space."""
    command = CommandLine(lambda: commands.show(desk.project), "What the machine is made of")

    def choose(model: str | None) -> None:
        if model and model != desk.project.model:
            desk.change(model=model, weld=(), free={}, settings={})
        again()

    def again() -> None:
        command.update()
        chosen.refresh()

    async def demonstration() -> None:
        show.props("loading")
        await in_background(lambda: demonstrate(desk))
        show.props(remove="loading")
        select.set_options(_choices(desk), value=desk.project.model)
        again()  # the machine may be the one that was chosen before, with other numbers

    def uploaded(model: str) -> None:
        select.set_options(_choices(desk), value=model)

    drawing = Drawing()
    with ui.row().classes("split"):
        with ui.column().classes("side"):
            select = ui.select(
                _choices(desk),
                value=desk.project.model or None,
                label="Machine",
                with_input=True,
                on_change=lambda event: choose(event.value),
            ).classes("w-full")
            ui.label("or a file of your own (TOML, URDF, MJCF)").classes("soft")
            upload(desk, "model", "Drop a model file", uploaded)
            ui.label("or everything filled in, to look around").classes("soft")
            show = ui.button("Demonstration", icon="school", on_click=demonstration).props("outline no-caps")

        @ui.refreshable
        async def chosen() -> None:
            newest = drawing.begin()
            if not desk.project.model:
                ui.label(WELCOME).classes("welcome soft")
                return
            if is_robot_file(Path(desk.project.model)):
                _held(desk, again)
            machine = await machine_of(desk)
            if machine is not None and newest():
                _facts(machine)
                frame(f"/view/machine?{time.time():.0f}", "the machine, drawn in space")

        with ui.column().classes("main"):
            await chosen()
    command.show()


def _choices(desk: Desk) -> dict[str, str]:
    choices = {path: path for path in kept(desk.folder, "model")}
    if desk.project.model:
        choices.setdefault(desk.project.model, desk.project.model)
    return choices | {name: f"{name}: {text}" for name, text in library().items()}


def _held(desk: Desk, then: Callable[[], None]) -> None:
    def hold(text: str) -> None:
        desk.change(weld=tuple(word.strip() for word in text.split(",") if word.strip()))
        then()

    box = ui.input("Floating links to hold, with commas between", value=", ".join(desk.project.weld))
    box.props("debounce=600 dense").classes("w-full").on_value_change(lambda event: hold(event.value or ""))


def _facts(machine: Machine) -> None:
    mechanism = machine.mechanism
    ui.label(machine.file.description or mechanism.name).classes("lead")
    counts = {
        "bodies": mechanism.bodies,
        "joints": mechanism.joints,
        "sensors": mechanism.sensors,
        "inputs": mechanism.inputs,
    }
    ui.label("; ".join(f"{word}: {', '.join(names) or 'none'}" for word, names in counts.items())).classes("soft")
    for note in machine.file.notes:
        ui.label(note).classes("verdict amber")
