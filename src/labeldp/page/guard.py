"""Who may talk to the page: this machine's owner, from the page itself, and nobody else.

A server on 127.0.0.1 can be reached by every program of this machine and by every web site that its browser shows.
Hence each request must name this very address (no name that was bound to 127.0.0.1 for the purpose), carry the
cookie that the token in the address was changed for, and, if it changes anything, come from this very page.

Browsers send a cookie to all ports of a machine, so to whatever else listens there. Hence all pages lie in a room,
whose name is random and the cookie's path: who does not know it is not sent the cookie.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # no-referrer would hide the origin of the page's own forms, too
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
"""On every response, unless it has its own."""

MOST_BYTES = 1 << 22
"""Of a form, which may name thousands of columns; uploads have no such limit, but the disk's."""


@dataclass
class Keys:
    """The secrets of one run: token and room in the address, the cookie that the token becomes, and every form's.

    The token is good for one visit: whoever sees the address later, in a history or a list of processes, is late.
    """

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    form: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    room: str = field(default_factory=lambda: f"/{secrets.token_urlsafe(12)}", repr=False)
    used: bool = False

    @property
    def address(self) -> str:
        """Where the page is entered, at its port."""
        return f"{self.room}/?token={self.token}"

    def accept_token(self, token: str) -> bool:
        """Whether this is the token, for the first time."""
        fits = secrets.compare_digest(token.encode(), self.token.encode()) and not self.used
        self.used |= fits
        return fits


class Guard:
    """Lets requests of the page itself through to an application, and answers all others.

    Parameters
    ----------
    app : ASGI application
    port : int
    keys : Keys
    touch : callable
        Called for each request that was let through.
    uploads : str
        The path to which large bodies may be posted.

    The application names its addresses without the room; so the guard takes it away, and adds it to redirects.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        port: int,
        keys: Keys,
        touch: Callable[[], None],
        uploads: str,
    ) -> None:
        self._app, self._keys, self._touch, self._uploads = app, keys, touch, uploads
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie = f"labeldp-{port}"  # cookies do not tell ports apart, names do

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return  # no web sockets: the connection is closed

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = _with_headers(message["headers"], self._keys.room)
            await send(message)

        request = Request(scope, receive)
        refused = self._refuse(request)
        if refused is not None:
            await refused(scope, receive, guarded_send)
            return
        self._touch()
        path = _path_in(self._keys.room, scope)
        scope = {**scope, "path": path, "raw_path": path.encode()}
        with suppress(Exception):  # was answered; what it says could quote anything, and must reach no log
            await self._app(scope, self._limited(scope, receive), guarded_send)

    def _refuse(self, request: Request) -> Response | None:  # noqa: PLR0911 (one for each reason)
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return bare_page(421, "This is not the address of the page.")
        if request.method not in ("GET", "HEAD", "POST"):
            return bare_page(405, "The page is read, or sent a form.")
        path = _path_in(self._keys.room, request.scope)
        if not path:
            return bare_page(403, "The page is at the address that labeldp page printed.")
        given = request.cookies.get(self._cookie, "")
        is_owner = secrets.compare_digest(given.encode(), self._keys.cookie.encode())
        token = request.query_params.get("token")
        if request.method == "GET" and path == "/" and token is not None:
            return RedirectResponse("/", status_code=303) if is_owner else self._enter(token)
        if not is_owner:
            return bare_page(
                403,
                "The page knows its owner by a cookie, which this browser did not send. If you came here by a "
                "link, this may help: ",
                home=self._keys.room,
            )
        site, mode = (request.headers.get(f"sec-fetch-{name}") for name in ("site", "mode"))
        if request.method == "POST":
            origin = request.headers.get("origin")
            own = origin == f"http://{hosts[0]}" if origin is not None else site == "same-origin"
            if not own or site not in (None, "same-origin"):
                return bare_page(403, "A form of another site cannot be sent here.")
        elif site not in (None, "none", "same-origin") and mode != "navigate":
            return bare_page(403, "Another site cannot read the page.")
        length = request.headers.get("content-length", "0")
        if path != self._uploads and not (length.isdecimal() and int(length) <= MOST_BYTES):
            return bare_page(413, "That is far too long for a form.")
        return None

    def _enter(self, token: str) -> Response:
        if not self._keys.accept_token(token):
            return bare_page(
                403,
                "This address is wrong, or was used before: it works once. If it was not you who used it, stop "
                "labeldp page and start it again. If it was, ",
                home=self._keys.room,
            )
        response = bare_page(200, "This leads on to the page: ", self._keys.room, leads=True)
        response.set_cookie(
            self._cookie, self._keys.cookie, httponly=True, samesite="strict", path=f"{self._keys.room}/"
        )
        response.headers["referrer-policy"] = "no-referrer"
        return response

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Return a channel that ends where a body is longer than a form may be, whatever its headers say."""
        if scope["path"] == self._uploads:
            return receive
        left = MOST_BYTES

        async def limited() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                return {"type": "http.disconnect"}
            return message

        return limited


def _path_in(room: str, scope: Scope) -> str:
    """Return a request's path inside the room, or nothing if it is elsewhere."""
    path = str(scope["path"])
    is_inside = secrets.compare_digest(path[: len(room) + 1].encode(), f"{room}/".encode())
    return path[len(room) :] if is_inside else ""


def _with_headers(headers: list[tuple[bytes, bytes]], room: str) -> list[Any]:
    headers = [(name, room.encode() + value if name == b"location" else value) for name, value in headers]
    there = {name.lower() for name, _ in headers}
    more = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in there]
    return [*headers, *more]


def bare_page(status: int, sentence: str, home: str = "", *, leads: bool = False) -> Response:
    """Return a page without style, with a link for who knows the room; it may lead there by itself.

    A redirect would not do after a visit from elsewhere, such as a file: browsers would send no cookie along.
    """
    way = f'<a href="{home}/">open the page</a>.' if home else ""
    lead = f'<meta http-equiv="refresh" content="0;url={home}/">' if leads else ""
    html = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{lead}'
        '<link rel="icon" href="data:,"><title>labeldp</title></head>'
        f"<body><main><h1>labeldp</h1><p>{sentence}{way}</p></main></body></html>"
    )
    return HTMLResponse(html, status_code=status)
