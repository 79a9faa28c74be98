"""Step six: what the fits found: reports, runs side by side, validation, calibrated files."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nicegui import ui

from shadowfit.errors import ShadowfitError
from shadowfit.evaluation import verdict
from shadowfit.projects import commands
from shadowfit.projects.runs import Run, runs, start
from shadowfit.web.comparison import comparison
from shadowfit.web.desk import Desk
from shadowfit.web.parts import CommandLine, frame, in_background

FILES = {"model.toml": "calibrated model", "report.html": "report", "result.json": "numbers", "log.csv": "iterations"}
# Seconds that writing a calibrated file may take.
PATIENCE = 120
MOST_COMPARED = 6


async def build(desk: Desk) -> None:
    """The runs of the project, one of them in full."""
    ended = {run.number: run for run in runs(desk.folder, "fit") if not run.running}
    summaries = {number: run.summary() for number, run in ended.items()}
    finished = {number: summary for number, summary in summaries.items() if summary is not None}
    if not finished:
        ui.label("No fit has ended with a result yet.").classes("lead")
        CommandLine(lambda: commands.validate(desk.project)).show()
        return
    compared = set(list(finished)[:MOST_COMPARED])

    @ui.refreshable
    def together() -> None:
        chosen = {number: finished[number] for number in finished if number in compared}
        ui.html(comparison(chosen), sanitize=False).classes("w-full")

    @ui.refreshable
    def one(number: int) -> None:
        _downloads(desk, ended[number])
        _validation(desk, ended[number])
        frame(f"/view/run/{number}/report", f"report of run {number}", "tall")
        CommandLine(lambda: commands.validate(desk.project, f"{ended[number].place}/result")).show()

    def compare(number: int, on: bool) -> None:
        (compared.add if on else compared.discard)(number)
        together.refresh()

    for number, summary in finished.items():
        _run_row(ended[number], summary, number in compared, compare, one)
    with ui.expansion("Runs side by side", value=len(finished) > 1).classes("w-full"):
        together()
    one(next(iter(finished)))


def _run_row(run: Run, summary: Mapping[str, Any], compared: bool, compare: Any, one: Any) -> None:
    colour = verdict.colour(summary)
    with ui.row().classes("file items-center w-full"):
        ui.checkbox(value=compared, on_change=lambda event: compare(run.number, event.value)).props(
            'aria-label="compare"'
        )
        ui.label(colour).classes(f"tag {colour}")
        when = time.strftime("%d %b %H:%M", time.localtime(run.started))
        ui.label(f"run {run.number}, {when}: {verdict.sentence(summary)}").classes("grow")
        ui.button("Show", on_click=lambda: one.refresh(run.number)).props("flat dense no-caps")


def _downloads(desk: Desk, run: Run) -> None:
    async def export() -> None:
        name = f"{Path(model).stem}.calibrated{Path(model).suffix}"
        line = commands.export(f"{run.place}/result", model, f"{run.place}/calibrated/{name}")
        program = [sys.executable, "-P", "-m", "shadowfit", *line]
        done = await in_background(
            lambda: subprocess.run(
                program, check=False, cwd=desk.folder, capture_output=True, text=True, timeout=PATIENCE
            )
        )
        terminal.text = done.stdout + done.stderr
        if done.returncode == 0:
            ui.download.from_url(f"/file/run/{run.number}/{name}")

    model = run.arguments[1]
    with ui.row().classes("items-center downloads"):
        ui.label(f"Run {run.number}").classes("lead")
        for name, text in FILES.items():
            if (run.result / name).exists():
                address = f"/file/run/{run.number}/{name}"
                ui.button(text, icon="download", on_click=lambda address=address: ui.download.from_url(address)).props(
                    "flat dense no-caps"
                )
        if Path(model).suffix:
            ui.button(f"{Path(model).name}, calibrated", icon="download", on_click=export).props("flat dense no-caps")
    terminal = ui.label().classes("terminal")
    terminal.bind_visibility_from(terminal, "text", bool)


def _validation(desk: Desk, run: Run) -> None:
    def begin() -> None:
        try:
            line = commands.validate(desk.project, f"{run.place}/result")
            start(desk.folder, "validate", lambda place: line)
        except ShadowfitError as error:
            ui.notify(str(error), type="negative")
        look()

    def look() -> None:
        newest = next(iter(_validations(desk, run)), None)
        terminal.text = "" if newest is None else newest.terminal()
        waiting.set_visibility(newest is not None and newest.running)

    with ui.row().classes("items-center"):
        ui.button("Try it on the recordings for validation", icon="rule", on_click=begin).props("flat dense no-caps")
        waiting = ui.spinner()
    terminal = ui.label().classes("terminal")
    terminal.bind_visibility_from(terminal, "text", bool)
    look()
    ui.timer(1.0, look)


def _validations(desk: Desk, run: Run) -> list[Run]:
    return [one for one in runs(desk.folder, "validate") if one.arguments[1] == f"{run.place}/result"]
