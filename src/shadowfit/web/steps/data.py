"""Step two: recordings, what they are for, and which column is which sensor or input."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nicegui import ui

from shadowfit.errors import ShadowfitError
from shadowfit.projects import commands
from shadowfit.projects.project import Part
from shadowfit.projects.uploads import kept
from shadowfit.recordings import Recording, parse_unit
from shadowfit.web.desk import Desk
from shadowfit.web.parts import CommandLine, Drawing, Update, frame, in_background, machine_of, problem, upload

PURPOSES = {"fit": "fit", "validation": "validation", "both": "both", "": "not used"}
TITLES = {"fit": "Samples for the fit", "validation": "Samples for validation"}
# The frame with the curves says which stretch was dragged over; nobody else is heard.
LISTEN = """window.onmessage = (event) => {
  const range = event.data && event.data.shadowfit;
  const ours = [...document.querySelectorAll("iframe.view")].some((frame) => frame.contentWindow === event.source);
  if (ours && Array.isArray(range)) emitEvent("stretch", { begin: Number(range[0]), end: Number(range[1]) });
}"""


async def build(desk: Desk) -> None:
    """Files, their parts, and the channels in them."""
    command = CommandLine(lambda: commands.check(desk.project))
    hear: list[Callable[[Mapping[str, Any]], None]] = []
    drawing = Drawing()

    def changed() -> None:
        command.update()
        channels.refresh()

    def arrived(path: str) -> None:
        if not desk.purpose_of(path):
            desk.use(path, "validation" if desk.project.fit.recordings else "fit")
        files.refresh()
        changed()

    def look(path: str) -> None:
        looked_at.clear()
        with looked_at:
            frame(f"/view/recording/{Path(path).name}", f"channels of {path}", "half")
            hear[:] = [_stretch(desk, path, chosen)]

    def chosen(path: str) -> None:
        files.refresh()
        windows.refresh()
        command.update()
        look(path)

    with ui.row().classes("split"):
        with ui.column().classes("side"):
            upload(desk, "recording", "Drop recordings", arrived)
            ui.label("CSV, NPZ, Parquet, MATLAB, HDF5 or bags; times in a column called time.").classes("soft")

            @ui.refreshable
            def windows() -> None:
                for name, title in TITLES.items():
                    _window(desk, name, title, command.update)

            windows()
        with ui.column().classes("main"):

            @ui.refreshable
            def files() -> None:
                _files(desk, changed, look)

            @ui.refreshable
            async def channels() -> None:
                await _channels(desk, changed, drawing.begin())

            files()
            looked_at = ui.element("div").classes("w-full")
            await channels()
    ui.run_javascript(LISTEN)
    ui.on("stretch", lambda event: [listener(event.args) for listener in hear])
    command.show()


def _stretch(desk: Desk, path: str, then: Callable[[str], None]) -> Callable[[Mapping[str, Any]], None]:
    """What was chosen by dragging over the curves, and buttons that say what it is for; returns what to tell it to."""
    chosen: list[float | None] = [None, None]

    def dragged(event: Mapping[str, Any]) -> None:
        begin, end = float(event["begin"]), float(event["end"])
        if not (math.isfinite(begin) and math.isfinite(end) and begin < end):
            return
        # As many digits as tell a thousandth of the stretch.
        digits = max(0, 3 - math.floor(math.log10(end - begin)))
        chosen[:] = round(begin, digits), round(end, digits)
        caption.text = f"{chosen[0]:g} to {chosen[1]:g} s"
        for button in buttons:
            button.enable()

    def use(name: str) -> None:
        desk.choose(path, name, *chosen)
        then(path)

    with ui.row().classes("items-center"):
        caption = ui.label("Drag over the curves to choose a stretch; a double click shows all.").classes("soft")
        buttons = [
            ui.button(f"Use it for {text}", on_click=lambda name=name: use(name)).props("flat dense no-caps")
            for name, text in (("fit", "the fit"), ("validation", "validation"))
        ]
        for button in buttons:
            button.disable()
    return dragged


def _window(desk: Desk, name: str, title: str, then: Update) -> None:
    part: Part = getattr(desk.project, name)

    def change(end: str, value: float | None) -> None:
        desk.change(**{name: dataclasses.replace(getattr(desk.project, name), **{end: value})})
        then()

    ui.label(title).classes("soft")
    with ui.row().classes("no-wrap w-full"):
        for end, text in (("begin", "from [s]"), ("end", "to [s]")):
            box = ui.number(text, value=getattr(part, end)).props("dense debounce=400 clearable").classes("w-1/2")
            box.on_value_change(lambda event, end=end: change(end, event.value))


def _files(desk: Desk, then: Update, look: Callable[[str], None]) -> None:
    def use(path: str, purpose: str) -> None:
        desk.use(path, purpose)
        then()

    files = kept(desk.folder, "recording")
    if not files:
        ui.label("No recording yet.").classes("soft")
    for path in files:
        with ui.row().classes("file items-center w-full"):
            ui.label(Path(path).name).classes("name")
            ui.space()
            purpose = ui.toggle(PURPOSES, value=desk.purpose_of(path)).props("no-caps unelevated padding='2px 10px'")
            purpose.on_value_change(lambda event, path=path: use(path, event.value))
            ui.button("Look", on_click=lambda path=path: look(path)).props("flat dense no-caps")


async def _channels(desk: Desk, then: Update, newest: Callable[[], bool]) -> None:
    """Which column is which channel, by hand or by name; as long as nobody draws it anew."""
    paths = (*desk.project.fit.recordings, *desk.project.validation.recordings)
    if not paths or not desk.project.model:
        ui.label("Choose a machine and recordings; then say here which column is which sensor.").classes("soft")
        return
    machine = await machine_of(desk)
    if machine is None:
        return
    try:
        headings = await in_background(lambda: sorted({text for path in paths for text in desk.headings(path)}))
    except ShadowfitError as error:
        problem(str(error))
        return
    read_back, complaint = await in_background(lambda: _read(desk, paths[0]))
    if not newest():
        return
    ui.label("Channels").classes("lead")
    with ui.element("div").classes("scroll"), ui.element("table").classes("channels"):
        _row("th", "sensor or input", "unit", "column", "its unit", "sign", "")
        for name, unit in machine.channels().items():
            with ui.element("tr"):
                _cells("td", name, "" if unit == "1" else unit)
                _choice(desk, name, headings, then)
                with ui.element("td"):
                    _state(read_back, name)
    if complaint:
        problem(complaint)


def _read(desk: Desk, path: str) -> tuple[Recording | None, str]:
    try:
        return desk.recording(path), ""
    except ShadowfitError as error:
        return None, str(error)


def _choice(desk: Desk, name: str, headings: list[str], then: Update) -> None:
    entry = desk.channel_entries().get(name, {})

    def change(key: str, value: Any) -> None:
        entries = desk.channel_entries()
        if key == "unit" and value and parse_unit(value) is None:
            ui.notify(f"{value!r} is not a known unit", type="negative")
            return
        desk.set_channels({**entries, name: {**entries.get(name, {}), key: value}})
        then()

    column = entry.get("column", "")
    with ui.element("td"):
        options = {"": "by its name", **{text: text for text in headings}}
        options.setdefault(column, column)
        ui.select(options, value=column, on_change=lambda event: change("column", event.value)).props(
            "dense borderless"
        )
    with ui.element("td"):
        _when_mapped(column, ui.input(value=entry.get("unit", ""), placeholder="as stated"), "unit", change)
    with ui.element("td"):
        sign = ui.select({1: "+", -1: "−"}, value=entry.get("sign", 1))
        _when_mapped(column, sign, "sign", lambda key, value: change(key, None if value == 1 else value))


def _when_mapped(column: str, box: Any, key: str, change: Callable[[str, Any], None]) -> None:
    """What is said of a column needs one."""
    box.props("dense borderless debounce=600").classes("narrow").set_enabled(bool(column))
    box.on_value_change(lambda event: change(key, event.value))


def _state(recording: Recording | None, name: str) -> None:
    if recording is not None and name in recording.channels:
        column = recording.columns.get(name, name)
        ui.label(f"found: {column}").classes("tag good")
    else:
        ui.label("not found").classes("tag bad")


def _row(tag: str, *texts: str) -> None:
    with ui.element("tr"):
        _cells(tag, *texts)


def _cells(tag: str, *texts: str) -> None:
    for text in texts:
        with ui.element(tag):
            ui.label(text)
