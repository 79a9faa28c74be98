"""Who may speak to the page: whoever has the address with its token, and nobody else on the machine or the network."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

# What forms add to the files in them.
OVERHEAD = 100_000
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"referrer-policy", b"no-referrer"),
)
REFUSAL = "Open the whole address that `shadowfit web` printed, with its token."


class Guard:
    """An ASGI application in front of another: token, origin and size of what comes in.

    The token comes once in the address (``/?token=...``) and is then kept in a cookie, so that it does not stand in
    the addresses of the page's own requests.
    """

    def __init__(self, app: App, token: str, name: str, limit: int) -> None:
        """``name`` is that of the cookie, ``limit`` the most bytes of a request."""
        self._app, self._token, self._name, self._limit = app, token, name, limit + OVERHEAD

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if "token" in query and scope["type"] == "http":
            await self._enter(scope, query, send)
        elif not (self._known(headers) and _same_origin(headers)):
            await _refuse(scope, receive, send, 403, REFUSAL)
        elif _length(headers) > self._limit:
            await _refuse(scope, receive, send, 413, "This is larger than the page takes; see --upload-limit.")
        else:
            await self._app(scope, _limited(receive, self._limit), _with_headers(send))

    async def _enter(self, scope: Message, query: dict[str, str], send: Send) -> None:
        """Exchange the token for a cookie."""
        if not secrets.compare_digest(query.pop("token").encode(), self._token.encode()):
            await _answer(send, 403, REFUSAL)
            return
        place = "/" + scope["path"].lstrip("/") + (f"?{urlencode(query)}" if query else "")
        cookie = f"{self._name}={self._token}; Path=/; HttpOnly; SameSite=Lax"
        await _answer(send, 303, "", ((b"location", place.encode()), (b"set-cookie", cookie.encode())))

    def _known(self, headers: dict[str, str]) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._name)
        except CookieError:
            return False
        return cookie is not None and secrets.compare_digest(cookie.value.encode(), self._token.encode())


def _same_origin(headers: dict[str, str]) -> bool:
    """Other pages in the same browser may not speak in its name."""
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")


def _length(headers: dict[str, str]) -> int:
    stated = headers.get("content-length", "0")
    return int(stated) if stated.isdecimal() else 0


def _limited(receive: Receive, limit: int) -> Receive:
    """The same messages, and the end of the connection where their bodies are longer than a limit."""
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > limit:
                return {"type": "http.disconnect"}
        return message

    return limited


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {key.lower() for key, _ in message.get("headers", ())}
            more = [header for header in HEADERS if header[0] not in present]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return sent


async def _refuse(scope: Message, receive: Receive, send: Send, status: int, text: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4403})
    else:
        await _answer(send, status, text)


async def _answer(send: Send, status: int, text: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    plain = ((b"content-type", b"text/plain; charset=utf-8"), *HEADERS, *headers)
    await send({"type": "http.response.start", "status": status, "headers": list(plain)})
    await send({"type": "http.response.body", "body": text.encode()})
