"""Pieces that several steps of the page have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import quote

from nicegui import events, ui

from shadowfit.errors import ShadowfitError
from shadowfit.evaluation.html_page import notice_html
from shadowfit.evaluation.notices import Notice
from shadowfit.projects import commands
from shadowfit.projects.uploads import ENDINGS, MEGABYTE, keep
from shadowfit.web.desk import Desk, Machine

T = TypeVar("T")
Update = Callable[[], None]


class CommandLine:
    """The command line that does the same as a step: shown at its end, up to date from its beginning."""

    def __init__(self, make: Callable[[], list[str]], note: str = "The same on the command line") -> None:
        self._make, self._note = make, note
        self._line: ui.label | None = None

    def show(self) -> None:
        """Put it here."""
        with ui.element("div").classes("command"):
            with ui.row().classes("items-center justify-between no-wrap"):
                ui.label(f"{self._note}, in the project's folder").classes("soft")
                copy = ui.button(icon="content_copy", on_click=lambda: ui.clipboard.write(self.text()))
                copy.props('flat dense size=sm aria-label="copy"')
            self._line = ui.label(self.text()).classes("line")

    def update(self) -> None:
        """Show it as it is now."""
        if self._line is not None:
            self._line.text = self.text()

    def text(self) -> str:
        """The command, or what is missing for one."""
        try:
            return commands.shown(self._make())
        except ShadowfitError as error:
            return f"# {error}"


class Drawing:
    """A piece of the page that waits while it is drawn: of several that have begun, the newest one goes on."""

    def __init__(self) -> None:
        self._newest = 0

    def begin(self) -> Callable[[], bool]:
        """Begin to draw; the answer says whether nobody has begun anew since."""
        self._newest += 1
        mine = self._newest
        return lambda: mine == self._newest


def problem(text: str) -> None:
    """A sentence about what is wrong."""
    ui.label(text).classes("verdict red").props("role=alert")


def notice_list(notices: Sequence[Notice]) -> None:
    """Notices, each in its colour with what to do next."""
    with ui.element("ul").classes("notices"):
        for notice in notices:
            with ui.element("li").classes(notice.severity):
                ui.html(notice_html(notice), sanitize=False)


def frame(address: str, title: str, kind: str = "") -> ui.element:
    """A page inside the page: it may draw, and nothing else."""
    made = ui.element("iframe").classes(f"view {kind}")
    made.props["src"], made.props["sandbox"], made.props["title"] = quote(address, safe="/?=&"), "allow-scripts", title
    return made


def upload(desk: Desk, kind: str, text: str, then: Callable[[str], None]) -> None:
    """A place to drop files on; ``then`` is called with the path of each in the project's folder."""

    async def take(event: events.UploadEventArguments) -> None:
        content = await event.file.read()
        try:
            then(keep(desk.folder, kind, event.file.name, content, desk.limit))
        except ShadowfitError as error:
            ui.notify(str(error), type="negative", multi_line=True)
        event.sender.reset()  # type: ignore[attr-defined]

    def refuse() -> None:
        ui.notify(f"at most {desk.limit:g} MB a file, ending in {', '.join(ENDINGS[kind])}", type="negative")

    area = ui.upload(
        label=text,
        multiple=True,
        auto_upload=True,
        max_file_size=int(desk.limit * MEGABYTE),
        on_upload=take,
        on_rejected=refuse,
    )
    area.props(f'accept="{",".join(ENDINGS[kind])}" flat bordered').classes("drop")


async def in_background(work: Callable[[], T]) -> T:
    """The result of work that takes a while, in a thread: the page goes on."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


async def machine_of(desk: Desk) -> Machine | None:
    """The project's machine, read in the background; None, with a sentence on the page, where there is none."""
    with ui.row().classes("items-center soft") as waiting:
        ui.spinner()
        ui.label("reading the machine")
    try:
        return await in_background(desk.machine)
    except ShadowfitError as error:
        problem(str(error))
        return None
    finally:
        waiting.delete()
