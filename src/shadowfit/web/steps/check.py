"""Step four: do machine and recordings belong together, before a fit?"""

from __future__ import annotations

from nicegui import ui

from shadowfit.errors import ShadowfitError
from shadowfit.projects import commands
from shadowfit.projects.runs import Run, runs, start
from shadowfit.web.desk import Desk
from shadowfit.web.parts import CommandLine, frame


async def build(desk: Desk) -> None:
    """Run a check and show its page."""

    def begin() -> None:
        try:
            start(desk.folder, "check", lambda place: commands.check(desk.project, f"{place}/check.html"))
        except ShadowfitError as error:
            ui.notify(str(error), type="negative")
        shown.refresh()

    ui.label(
        "Evaluates the equations of motion along the recordings with the start values: signs, units, order, and which "
        "parameters this motion can tell."
    ).classes("soft")
    ui.button("Check", icon="fact_check", on_click=begin).props("no-caps unelevated").mark("start-check")
    was_running = False

    @ui.refreshable
    def shown() -> None:
        nonlocal was_running
        checks = runs(desk.folder, "check")
        was_running = bool(checks) and checks[0].running
        if checks:
            _show(checks[0], was_running)

    def look() -> None:
        if was_running:
            checks = runs(desk.folder, "check")
            if not (checks and checks[0].running):
                shown.refresh()

    shown()
    ui.timer(0.5, look)
    CommandLine(lambda: commands.check(desk.project)).show()


def _show(run: Run, running: bool) -> None:
    if running:
        with ui.row().classes("items-center soft"):
            ui.spinner()
            ui.label("checking; the page may be closed meanwhile")
    elif (run.folder / "check.html").exists():
        frame(f"/view/run/{run.number}/check", "what the check found", "tall")
    else:
        ui.label(run.terminal()).classes("terminal")
