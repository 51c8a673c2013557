"""Access to the page: for its owner's browser, from the page itself, and nobody else.

A server on 127.0.0.1 can be reached by every program of this machine and by every web site that its browser shows.
So each request must name this machine (Starlette's `TrustedHostMiddleware` refuses other names that were bound to
127.0.0.1), carry the cookie that the token in the address is exchanged for, and, if it changes anything, come from
the page itself.

Browsers send a cookie to all ports of a machine. So all pages are under a random path, which is the cookie's path
too: a server at another port does not know it, and is not sent the cookie.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL_HOSTS = ("127.0.0.1", "localhost")
COOKIE = "labeldp"
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # no-referrer would hide the origin of the page's own forms, too
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every response that does not have its own."""

_SECRET = partial(secrets.token_urlsafe, 32)


@dataclass
class Keys:
    """The secrets of one run: the path of all pages, the token, and the cookie that it becomes.

    The token works once: whoever sees the address later, in a history or a list of processes, is too late.
    """

    token: str = field(default_factory=_SECRET, repr=False)
    cookie: str = field(default_factory=_SECRET, repr=False)
    base: str = field(default_factory=lambda: f"/{secrets.token_urlsafe(12)}", repr=False)
    is_used: bool = False

    @property
    def address(self) -> str:
        """The address that the page is entered by, at its port."""
        return f"{self.base}/?token={self.token}"

    def accept_token(self, token: str) -> bool:
        """Test for the token, and accept it for the first time only."""
        is_valid = not self.is_used and _equals(token, self.token)
        self.is_used |= is_valid
        return is_valid


class OwnerOnly:
    """Passes requests of the page itself on to an application, and answers all others.

    Parameters
    ----------
    app : ASGI application
    keys : Keys
    touch : callable
        Called for each request that is passed on.
    """

    def __init__(self, app: ASGIApp, keys: Keys, touch: Callable[[], None]) -> None:
        self._app, self._keys, self._touch = app, keys, touch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        refusal = self._refuse(Request(scope))
        if refusal is None:
            self._touch()
        await (refusal or self._app)(scope, receive, send)

    def _refuse(self, request: Request) -> Response | None:
        base = self._keys.base
        if not request.scope["path"].startswith(f"{base}/"):
            return bare_page(403, "The page is at the address that labeldp page printed.")
        is_owner = _equals(request.cookies.get(COOKIE, ""), self._keys.cookie)
        token = request.query_params.get("token")
        if request.method == "GET" and token is not None:
            return RedirectResponse(f"{base}/", status_code=303) if is_owner else self._enter(token)
        if not is_owner:
            return bare_page(403, "The page knows its owner by a cookie, which this browser did not send.", base)
        if request.method not in ("GET", "HEAD") and not _is_own_form(request):
            return bare_page(403, "Another site cannot use the page.")
        return None

    def _enter(self, token: str) -> Response:
        base = self._keys.base
        if not self._keys.accept_token(token):
            problem = (
                "This address is wrong, or was used before: it works once. If it was not you who used it, stop "
                "labeldp page and start it again."
            )
            return bare_page(403, problem, base)
        response = bare_page(200, "Continue to the page.", base, forward=True)
        response.set_cookie(COOKIE, self._keys.cookie, httponly=True, samesite="strict", path=f"{base}/")
        response.headers["referrer-policy"] = "no-referrer"
        return response


def _equals(text: str, secret: str) -> bool:
    return secrets.compare_digest(text.encode(), secret.encode())


def _is_own_form(request: Request) -> bool:
    """Test for the page's own origin; browsers send the origin of every form."""
    return request.headers.get("origin") == f"http://{request.headers['host']}"


class SafeAnswers:
    """Adds `HEADERS` to all answers of an application, and lets none of its errors reach a log.

    Parameters
    ----------
    app : ASGI application
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; web sockets are closed."""
        if scope["type"] != "http":
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        with suppress(Exception):  # it was answered; its message may quote data
            await self._app(scope, receive, send_safely)


def bare_page(status: int, sentence: str, home: str = "", *, forward: bool = False) -> Response:
    """Return a page without style, with a link to the page at ``home``; ``forward`` follows it.

    A redirect would not do after a visit from elsewhere, such as a file: browsers would send no cookie along.
    """
    link = f' <a href="{home}/">Open the page</a>' if home else ""
    meta = f'<meta http-equiv="refresh" content="0;url={home}/">' if forward else ""
    html = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{meta}'
        '<link rel="icon" href="data:,"><title>labeldp</title></head>'
        f"<body><main><h1>labeldp</h1><p>{sentence}{link}</p></main></body></html>"
    )
    return HTMLResponse(html, status_code=status)
