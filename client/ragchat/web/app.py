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
_NO_PAGE = "Other programs are served at /v1. The page is not: start `ragchat web` without --api-only."
# The addresses of views that need scripts; the other two, search and reading, work without.
VIEWS = ("/", "/sessions/{id}", "/notebooks/{name}", "/library", "/map", "/evaluation", "/setup")


def make_app(
    site: Site, keys: Keys, origins: frozenset[str], cookie: str, *, private: bool, page: bool = True
) -> Starlette:
    """The application. `origins` are those it answers at, `cookie` is the name of its cookie.

    `private`: other users of this machine are refused. `page`: False serves other programs alone.
    """

    async def sign_in(request: Request) -> Response:
        error = ""
        if request.method == "POST":
            # python-multipart would be needed to let Starlette read it.
            form = parse_qs((await read_body(request)).decode("utf-8", "replace"))
            # Only now: many requests that send their bodies slowly would all have been let through.
            if seconds := keys.seconds_locked():
                error = f"Too many tries: wait {ceil(seconds)} s."
            elif keys.is_password(form.get("password", [""])[0]):
                return with_cookie(HTMLResponse(_SIGNED_IN))
            else:
                error = "This is not the password."
        elif keys.is_signed_in(request.cookies.get(cookie, "")):
            # An address that was used is still in the history of the browser.
            return HTMLResponse(_SIGNED_IN, headers={"cache-control": "no-store"})
        elif key := request.query_params.get("key", ""):
            if keys.use(key):
                return with_cookie(HTMLResponse(_SIGNED_IN))
            error = "This address has been used already."
        page = _SIGN_IN.substitute(error=escape(error), hidden="" if keys.password else "hidden")
        return HTMLResponse(page, 401 if error else 200, {"cache-control": "no-store"})

    async def sign_out(request: Request) -> Response:
        keys.sign_out(request.cookies.get(cookie, ""))
        response = HTMLResponse(_SIGN_IN.substitute(error="", hidden="" if keys.password else "hidden"))
        response.delete_cookie(cookie)
        return response

    def with_cookie(response: Response) -> Response:
        response.headers["cache-control"] = "no-store"
        response.set_cookie(
            cookie,
            keys.sign_in(),
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="strict",
            # Behind a proxy that takes TLS off, too. Browsers send it to loopback without TLS as well.
            secure=any(origin.startswith("https:") for origin in origins),
        )
        return response

    async def refused(_: Request, error: Exception) -> Response:
        return error_response(error)

    async def live(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    pages = [
        *(Route(path, view) for path in VIEWS),
        *plain.ROUTES,
        Route("/sign-in", sign_in, methods=["GET", "POST"]),
        Route("/sign-out", sign_out, methods=["POST"]),
        *sessions.ROUTES,
        *search.ROUTES,
        *reading.ROUTES,
        *turns.ROUTES,
        *library.ROUTES,
        *sources.ROUTES,
        *uploads.ROUTES,
        *changes.ROUTES,
        *map.ROUTES,
        *evaluation.ROUTES,
        *setup.ROUTES,
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    no_page = [Route("/sign-in", lambda _: PlainTextResponse(_NO_PAGE))]
    app = Starlette(
        routes=[*(pages if page else no_page), *completions.ROUTES, Route("/health/live", live)],
        middleware=[Middleware(Access, keys, origins, cookie, private=private)],
        exception_handlers={WebError: refused},
    )
    # Behind a proxy that takes TLS off, it would lead to http://.
    app.router.redirect_slashes = False
    app.state.site = site
    return app
