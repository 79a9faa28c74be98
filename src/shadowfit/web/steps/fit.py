"""Step five: the fit, watched while it runs in a process of its own."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from shadowfit.errors import ShadowfitError
from shadowfit.evaluation import verdict
from shadowfit.projects import commands
from shadowfit.projects.runs import Run, runs, start
from shadowfit.web.course import cost_chart, course, newest_values, parameter_chart, residual_chart
from shadowfit.web.desk import Desk
from shadowfit.web.parts import CommandLine, Update, notice_list

CHARTS = (cost_chart, parameter_chart, residual_chart)
NUMBERS = {"huber": "robust beyond N deviations", "timestep": "time-step [s]", "max-iterations": "most iterations"}


async def build(desk: Desk) -> None:
    """Options, a button to start and one to stop, and what goes on."""
    command = CommandLine(lambda: commands.fit(desk.project))

    def begin() -> None:
        try:
            start(desk.folder, "fit", lambda place: commands.fit(desk.project, f"{place}/result"))
        except ShadowfitError as error:
            ui.notify(str(error), type="negative")
        look()

    def end() -> None:
        for run in runs(desk.folder, "fit"):
            run.stop()
        look()

    with ui.row().classes("items-center"):
        go = ui.button("Start the fit", icon="play_arrow", on_click=begin).props("no-caps unelevated").mark("start-fit")
        halt = ui.button("Stop", icon="stop", on_click=end).props("no-caps outline").mark("stop-fit")
        state = ui.label().classes("lead").mark("state")
        ui.link("Results and downloads", "/results")
    with ui.expansion("Options").classes("w-full"):
        _options(desk, command.update)
    sentence = ui.label().classes("verdict")
    reasons = ui.element("div").classes("w-full")
    with ui.row().classes("charts"):
        charts = [ui.echart(make({})).classes("chart") for make in CHARTS]
    newest = ui.html(sanitize=False).classes("w-full")
    with ui.expansion("What the command says", value=True).classes("w-full"):
        terminal = ui.label().classes("terminal newest")
    seen: list[Any] = [None]

    def look() -> None:
        fits = runs(desk.folder, "fit")
        run = fits[0] if fits else None
        running = run is not None and run.running
        go.set_visibility(not running)
        halt.set_visibility(running)
        if run is None:
            state.text = "Nothing was fitted yet."
            sentence.set_visibility(False)
            return
        text = run.terminal()
        if (run.number, running, text) == seen[0] and not running:
            return
        seen[0] = (run.number, running, text)
        state.text = _state(run, running)
        terminal.text = text
        _judge(sentence, run, running)
        _explain(reasons, run, running)
        now = course(run)
        newest.content = newest_values(now)
        for chart, make in zip(charts, CHARTS, strict=True):
            chart.options.clear()
            chart.options.update(make(now))
            chart.update()

    look()
    ui.timer(1.0, look)
    command.show()


def _state(run: Run, running: bool) -> str:
    if not running:
        return f"Run {run.number} has ended."
    live = run.unfinished()
    if live is None or not live["log"]:
        return f"Run {run.number}: reading, compiling, finding the first trajectory"
    return f"Run {run.number}: iteration {live['log'][-1]['number']}; this page may be closed meanwhile"


def _judge(sentence: ui.label, run: Run, running: bool) -> None:
    summary = None if running else run.summary()
    sentence.set_visibility(not running)
    sentence.classes(remove="green amber red")
    if summary is None:
        sentence.classes("red")
        sentence.text = "There is no result; below is what the fit said."
    else:
        sentence.classes(verdict.colour(summary))
        sentence.text = verdict.sentence(summary)


def _explain(reasons: ui.element, run: Run, running: bool) -> None:
    """What speaks against the numbers, and what to do about it."""
    reasons.clear()
    summary = None if running else run.summary()
    if summary is not None:
        with reasons:
            notice_list(verdict.notices(summary))


def _options(desk: Desk, then: Update) -> None:
    def change(name: str, value: Any) -> None:
        others = {key: given for key, given in desk.project.options.items() if key != name}
        if name == "max-iterations" and value:
            value = int(value)
        desk.change(options={**others, name: value} if value else others)
        then()

    options = desk.project.options
    with ui.row().classes("items-center"):
        for name, text in NUMBERS.items():
            box = ui.number(text, value=options.get(name)).props("dense debounce=400 clearable").classes("wide")
            box.on_value_change(lambda event, name=name: change(name, event.value))
        quantities = ui.textarea("report, one expression a line", value="\n".join(options.get("report", [])))
        quantities.props("dense debounce=600 autogrow").classes("wide").on_value_change(
            lambda event: change("report", [line.strip() for line in (event.value or "").splitlines() if line.strip()])
        )
        ui.switch("the paper's method", value=bool(options.get("paper"))).on_value_change(
            lambda event: change("paper", event.value)
        )
