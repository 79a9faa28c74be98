"""The frame of the page: six addresses, one for each step, with the way between them."""

from __future__ import annotations

import importlib.resources
from collections.abc import Awaitable, Callable

from nicegui import ui

from shadowfit.errors import ShadowfitError
from shadowfit.projects.project import FILE
from shadowfit.records import record
from shadowfit.web.desk import Desk
from shadowfit.web.parts import problem
from shadowfit.web.steps import check, data, fit, machine, parameters, results


@record(frozen=True)
class Step:
    """A step: its address, its title, and what builds it."""

    key: str
    title: str
    build: Callable[[Desk], Awaitable[None]]


STEPS = (
    Step("machine", "Machine", machine.build),
    Step("data", "Data", data.build),
    Step("parameters", "Parameters", parameters.build),
    Step("check", "Check", check.build),
    Step("fit", "Fit", fit.build),
    Step("results", "Results", results.build),
)


def add_pages(desk: Desk) -> None:
    """Add the steps to the application; the first one is also the home page."""
    for step in STEPS:
        _add(desk, step, f"/{step.key}")
    _add(desk, STEPS[0], "/")


def _add(desk: Desk, step: Step, address: str) -> None:
    @ui.page(address, title=f"{step.title} – shadowfit")
    async def show() -> None:
        ui.add_css(_style())
        ui.colors(primary="#2f6fcf")
        _head(desk, step)
        with ui.column().classes("step"):
            ui.label(step.title).classes("title").props("role=heading")
            # What follows may take seconds; the frame is there before.
            await ui.context.client.connected()
            try:
                desk.load()
                await step.build(desk)
            except ShadowfitError as error:
                problem(str(error))
        ui.element("span").props("id=ready").classes("hidden")


def _head(desk: Desk, here: Step) -> None:
    with ui.element("header").classes("head"):
        with ui.element("div").classes("brand"):
            ui.label("shadowfit")
            ui.label(desk.folder.name).classes("soft")
            if (desk.folder / FILE).exists():
                ui.link(FILE, "/file/project").classes("soft")
        with ui.element("nav").props('aria-label="steps"'):
            for number, step in enumerate(STEPS, 1):
                link = ui.link(f"{number} {step.title}", f"/{step.key}")
                if step is here:
                    link.classes("here").props('aria-current="step"')


def _style() -> str:
    return (importlib.resources.files("shadowfit.web") / "style.css").read_text("utf-8")
