"""Access to the studio: one browser on this machine, which has followed the printed link.

A page of another site, a name that leads here by a trick (DNS rebinding), a second browser, and a form that was posted
from elsewhere are refused. Browsers send cookies to every port of a host: so the studio's cookie is for a secret path.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# A page that leads a browser to the studio: the one-time link is not shown on a command line, which all users see.

_PAGE = """\
<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}">
<title>Treetop studio</title>
<p><a href="{link}">Open the studio</a>
"""


def redirect_page(link: str) -> str:
    """Return an HTML page that leads to a link."""
    return _PAGE.format(link=escape(link))


class RedirectFile:
    """A file that leads to a link, which only this user can read."""

    def __init__(self, link: str) -> None:
        self.path = Path(mkdtemp(prefix="treetop-studio-")) / "open.html"  # mkdtemp: 0700
        with open(self.path, "x", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(redirect_page(link))

    def remove(self) -> None:
        """Remove the file and its folder, if they are still there."""
        try:
            self.path.unlink(missing_ok=True)
            self.path.parent.rmdir()
        except OSError:  # gone already
            return


COOKIE = "treetop-studio"
OWN = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Policy of the studio's pages: they load parts of the studio only."""
SHOWN = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
"""Policy of pages of releases and sites: a sandbox has no cookies, no forms, and no way back into the studio."""
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without any, browsers would not say where a form comes from
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Robots-Tag": "noindex",
}
_SAFE = ("GET", "HEAD")


def _secret() -> str:
    return secrets.token_urlsafe(24)


@dataclass
class Keys:
    """The secrets of a browser; made anew by every start, and written nowhere."""

    token: str | None = field(default_factory=_secret, repr=False)
    """Opens the studio once; None after use."""
    session: str = field(default_factory=_secret, repr=False)
    room: str = field(default_factory=lambda: f"/{_secret()}", repr=False)
    """Path of all pages of the studio, and of the cookie."""
    shelf: str = field(default_factory=lambda: f"/{_secret()}", repr=False)
    """Path of pages of releases and sites; a sandbox has no cookie to show."""
    on_entry: Callable[[], None] = field(default=lambda: None, repr=False)


def is_same(given: str, secret: str | None) -> bool:
    """Compare a secret, in a time that does not depend on how much of it is right."""
    return secret is not None and hmac.compare_digest(given.encode(), secret.encode())


class Guard:
    """Lets a request through to the studio, or refuses it."""

    def __init__(self, app: ASGIApp, keys: Keys, hosts: Iterable[str]) -> None:
        self.app, self.keys, self.hosts = app, keys, frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers, path = Headers(scope=scope), str(scope["path"])
        shown = path.startswith(f"{self.keys.shelf}/")
        answer = self._refusal(scope, headers, shown) or self._entry(scope, headers)
        if answer is None and not shown and not (path.startswith(f"{self.keys.room}/") and self._knows(headers)):
            answer = _no(403, "Open the studio by the link that it printed when it was started. It works once.")

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    told[name] = value
                told["Content-Security-Policy"] = SHOWN if shown else OWN
                if not shown:
                    told["Cross-Origin-Resource-Policy"] = "same-origin"
            await send(message)

        await (answer or self.app)(scope, receive, guarded)

    def _refusal(self, scope: Scope, headers: Headers, shown: bool) -> Response | None:
        host, site, method = headers.get("host", ""), headers.get("sec-fetch-site"), scope["method"]
        if host not in self.hosts or len(headers.getlist("host")) != 1:
            return _no(421, "This is not the address of the studio.")
        if method in _SAFE:
            enters = shown or scope["path"] == "/"  # where nothing is but the exchange of the token
            foreign = site not in (None, "none", "same-origin") and not enters
            return _no(403, "The studio does not answer to pages of other sites.") if foreign else None
        if method != "POST" or shown:
            return _no(405, "The studio knows GET and POST.")
        if headers.get("origin") != f"http://{host}" or site not in (None, "same-origin"):
            return _no(403, "The studio takes forms from its own pages only.")
        return None

    def _entry(self, scope: Scope, headers: Headers) -> Response | None:
        """Exchange the token for a cookie, once."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if scope["path"] != "/" or scope["method"] != "GET" or given is None:
            return None
        if not is_same(given[0], self.keys.token):
            return _no(403, "This link has been used, or is of an earlier start. Stop the studio and start it again.")
        self.keys.token = None
        self.keys.on_entry()
        room = f"{self.keys.room}/"
        # Browsers keep a strict cookie back while they follow redirects from another place, as our file is.
        own = headers.get("sec-fetch-site") in (None, "none", "same-origin")
        answer = RedirectResponse(room, 303) if own else HTMLResponse(redirect_page(room))
        answer.set_cookie(
            COOKIE, self.keys.session, path=f"{self.keys.room}/", httponly=True, samesite="strict", secure=False
        )
        return answer

    def _knows(self, headers: Headers) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return found is not None and is_same(found.value, self.keys.session)


def _no(status: int, why: str) -> Response:
    return PlainTextResponse(f"{why}\n", status)
