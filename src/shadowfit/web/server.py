"""The server of the page: one project, one address with a token."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from nicegui import ui

from shadowfit.errors import ShadowfitError
from shadowfit.projects.uploads import MEGABYTE
from shadowfit.web.desk import Desk
from shadowfit.web.files import add_routes
from shadowfit.web.guard import Guard
from shadowfit.web.page import add_pages


class WebError(ShadowfitError):
    """A page that cannot be served."""


LOOPBACK = ("127.0.0.1", "::1", "localhost")


def application(desk: Desk, token: str, name: str) -> Guard:
    """The page of a desk behind its guard."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    add_routes(app, desk)
    add_pages(desk)
    ui.run_with(app, title="shadowfit", favicon="🔧", dark=None, show_welcome_message=False)
    return Guard(app, token, name, int(desk.limit * MEGABYTE))


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes calls; on a free port for port 0.

    Raises:
        WebError: the address cannot be had.
    """
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise WebError(f"no page at {host}:{port}: {error.strerror or error}; choose another --port") from error


def serve(folder: Path, host: str, port: int, limit: float, *, show: bool) -> None:
    """Serve the page of a folder until the process is asked to end; its address is printed first."""
    token = secrets.token_urlsafe(24)
    door = listen(host, port)
    port = int(door.getsockname()[1])
    guarded = application(Desk(folder, limit), token, f"shadowfit_{port}")
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/?token={token}"
    print(address, flush=True)
    if show:
        webbrowser.open(address)
    settings = uvicorn.Config(guarded, log_level="warning", ws_max_size=MEGABYTE, timeout_graceful_shutdown=1)
    uvicorn.Server(settings).run(sockets=[door])
