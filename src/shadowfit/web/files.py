"""Addresses of files and pages of a project: read-only, by number and known name, never by a path from outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse, HTMLResponse

from shadowfit.errors import ShadowfitError
from shadowfit.evaluation.store import is_own
from shadowfit.projects.project import FILE
from shadowfit.projects.runs import FOLDER
from shadowfit.projects.uploads import inside, kept
from shadowfit.web import views
from shadowfit.web.desk import Desk

# Pages draw themselves from the numbers in them, and ask nobody for anything.
POLICY = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; frame-ancestors 'self'; sandbox allow-scripts"
}


def add_routes(app: FastAPI, desk: Desk) -> None:
    """Add the addresses of a desk's files to an application."""

    @app.get("/view/machine")
    def machine() -> HTMLResponse:
        return _page(lambda: views.machine_page(desk.machine()))

    @app.get("/view/recording/{name}")
    def recording(name: str) -> HTMLResponse:
        path = next((path_kept for path_kept in kept(desk.folder, "recording") if Path(path_kept).name == name), None)
        if path is None:
            raise HTTPException(404)
        return _page(lambda: views.recording_page(desk.recording(path), desk.parts_of(path)))

    @app.get("/view/run/{number}/{page}")
    def run_page(number: int, page: str) -> HTMLResponse:
        names = {"report": ("result", "report.html"), "check": ("check.html",)}
        if page not in names:
            raise HTTPException(404)
        file = _existing(desk.folder, FOLDER, str(number), *names[page])
        return HTMLResponse(file.read_text("utf-8"), headers=POLICY)

    @app.get("/file/project")
    def project_file() -> FileResponse:
        return _download(_existing(desk.folder, FILE))

    @app.get("/file/run/{number}/{name}")
    def run_file(number: int, name: str) -> FileResponse:
        folder = ("calibrated",) if not is_own(name) else ("result",)
        return _download(_existing(desk.folder, FOLDER, str(number), *folder, name))


def _page(make: Callable[[], str]) -> HTMLResponse:
    try:
        return HTMLResponse(make(), headers=POLICY)
    except ShadowfitError as error:
        return HTMLResponse(views.message_page(str(error)), headers=POLICY)


def _existing(folder: Path, *parts: str) -> Path:
    try:
        path = inside(folder, *parts)
    except ShadowfitError:
        raise HTTPException(404) from None
    if not path.is_file():
        raise HTTPException(404)
    return path


def _download(path: Path) -> FileResponse:
    return FileResponse(path, filename=path.name, headers=POLICY)
