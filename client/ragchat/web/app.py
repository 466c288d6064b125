"""The table of routes: the page itself, signing in, and the parts of the API."""

from __future__ import annotations

from html import escape
from math import ceil
from string import Template
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ragchat.web import (
    changes,
    completions,
    evaluation,
    library,
    map,
    plain,
    reading,
    search,
    sessions,
    setup,
    sources,
    turns,
    uploads,
)
from ragchat.web.access import COOKIE_SECONDS, Access, Keys
from ragchat.web.errors import WebError, error_response
from ragchat.web.page import STATIC, view
from ragchat.web.site import Site, read_body

_SIGN_IN = Template((STATIC / "sign-in.html").read_text("utf-8"))
# After signing in, our own page sends the browser on: a redirect of a request from elsewhere would not carry
# the cookie, which is sent to requests of our own pages only.
_SIGNED_IN = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">'
    '<link rel="icon" href="/static/icon.svg"><p>Signed in.'
)
_NOT_STORED = {"cache-control": "no-store"}
_NO_KEY = "This address is not accepted: it has been used, is of an earlier start, or is incomplete."
_NO_PAGE = "Other programs are served at /v1. The page is not: start `ragchat web` without --api-only."
PARTS = (changes, evaluation, library, map, plain, reading, search, sessions, setup, sources, turns, uploads)
# The addresses of views that need scripts; the other two, search and reading, work without.
VIEWS = ("/", "/sessions/{id}", "/notebooks/{name}", "/library", "/map", "/evaluation", "/setup")


def make_app(
    site: Site, keys: Keys, origins: frozenset[str], cookie: str, *, private: bool, page: bool = True
) -> Starlette:
    """The application. `origins` are those it answers at, `cookie` is the name of its cookie.

    `private`: other users of this machine are refused. `page`: False serves other programs alone.
    """
    # Behind a proxy that takes TLS off, too. Browsers send it to loopback without TLS as well.
    signing = _SignIn(keys, cookie, is_secure=any(origin.startswith("https:") for origin in origins))
    pages = [
        *(Route(path, view) for path in VIEWS),
        Route("/sign-in", signing.sign_in, methods=["GET", "POST"]),
        Route("/sign-out", signing.sign_out, methods=["POST"]),
        *(route for part in PARTS for route in part.ROUTES),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    no_page = [Route("/sign-in", lambda _: PlainTextResponse(_NO_PAGE))]
    app = Starlette(
        routes=[*(pages if page else no_page), *completions.ROUTES, Route("/health/live", _live)],
        middleware=[Middleware(Access, keys, origins, cookie, private=private, page=page)],
        exception_handlers={WebError: _refused},
    )
    # Behind a proxy that takes TLS off, it would lead to http://.
    app.router.redirect_slashes = False
    app.state.site = site
    return app


async def _refused(_: Request, error: Exception) -> Response:
    return error_response(error)


async def _live(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


class _SignIn:
    """Signs browsers in and out. `is_secure`: they send the cookie over TLS only."""

    def __init__(self, keys: Keys, cookie: str, *, is_secure: bool) -> None:
        self._keys = keys
        self._cookie = cookie
        self._is_secure = is_secure

    async def sign_in(self, request: Request) -> Response:
        keys = self._keys
        if request.method == "POST":
            # python-multipart would be needed to let Starlette read it.
            form = parse_qs((await read_body(request)).decode("utf-8", "replace"))
            # Only now: many requests that send their bodies slowly would all have been let through.
            if seconds := keys.seconds_locked():
                return self._form(f"Too many tries: wait {ceil(seconds)} s.")
            if keys.is_password(form.get("password", [""])[0]):
                return self._signed_in()
            return self._form("This is not the password.")
        if keys.is_signed_in(request.cookies.get(self._cookie, "")):
            # An address that was used is still in the history of the browser.
            return HTMLResponse(_SIGNED_IN, headers=_NOT_STORED)
        if key := request.query_params.get("key", ""):
            return self._signed_in() if keys.use(key) else self._form(_NO_KEY)
        return self._form()

    async def sign_out(self, request: Request) -> Response:
        self._keys.sign_out(request.cookies.get(self._cookie, ""))
        response = self._form()
        response.delete_cookie(self._cookie)
        return response

    def _form(self, error: str = "") -> Response:
        page = _SIGN_IN.substitute(error=escape(error), hidden="" if self._keys.password else "hidden")
        return HTMLResponse(page, 401 if error else 200, _NOT_STORED)

    def _signed_in(self) -> Response:
        response = HTMLResponse(_SIGNED_IN, headers=_NOT_STORED)
        response.set_cookie(
            self._cookie,
            self._keys.sign_in(),
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="strict",
            secure=self._is_secure,
        )
        return response
