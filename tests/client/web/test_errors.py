"""Every error of the page, with the sentence and the hint that the user reads."""

from __future__ import annotations

import pytest

from ragchat.web import errors
from ragchat.web.errors import WebError, error_document, error_response
from ragchat.web.pages import PageUnusable

_ADDRESS = "Use the address that ragchat printed. Behind a proxy, set --public-url to its address."
TABLE: list[tuple[WebError, int, str, str]] = [
    (errors.ForeignHost("evil.example"), 403, "This page is not served as 'evil.example'.", _ADDRESS),
    (errors.ForeignOrigin("http://a:1"), 403, "Requests from http://a:1 are refused.", _ADDRESS),
    (
        errors.ForeignUser(),
        403,
        "This page belongs to another user of this machine.",
        "Start a page of your own: `ragchat web`.",
    ),
    (
        errors.NotSignedIn(),
        401,
        "This browser is not signed in.",
        "Press Enter where `ragchat web` runs, and open the new address in another tab.",
    ),
    (
        errors.ForeignRequest(),
        403,
        "Requests of programs carry no cookies: this one may come from a web page.",
        "Send the token alone, as `Authorization: Bearer …`.",
    ),
    (
        errors.TokenNeeded("none was sent"),
        401,
        "Other programs need the token of this server: none was sent.",
        "Set the API key of the program to the token in the file that `ragchat web` names.",
    ),
    (
        errors.NotSupported("tools", "there are none"),
        400,
        "tools is not supported here: there are none.",
        "Send the request without it.",
    ),
    (errors.NoSuchModel("gpt"), 404, "There is no model 'gpt' here.", "GET /v1/models lists them."),
    (
        errors.TooManyTurns(8),
        429,
        "8 questions are being answered already, which is the limit.",
        "Ask again when one of them is done.",
    ),
    (errors.BadRequest("it is empty"), 400, "The request cannot be read: it is empty.", ""),
    (errors.NotFound("document of that id"), 404, "There is no document of that id.", ""),
    (errors.NoPage(), 404, "There is no page here: other programs are served at /v1.", ""),
    (
        errors.Busy(),
        409,
        "This conversation is still answering a question.",
        "Wait for the answer, or stop it.",
    ),
    (errors.Stopped(), 409, "Stopped.", ""),
    (errors.Outdated(), 409, "This conversation has gone on elsewhere: it is shown as it is now.", ""),
    (errors.NotAccepted("Pick one."), 422, "Pick one.", ""),
    (errors.TooLarge("a.pdf", "10 bytes"), 413, "a.pdf is larger than 10 bytes.", ""),
    (errors.NotAdded("/notes is no folder."), 409, "/notes is no folder.", ""),
    (
        errors.CopyFailed("a.md", "/files", "no space left"),
        507,
        "a.md cannot be copied to /files: no space left.",
        "Is the disk full, or read-only?",
    ),
    (PageUnusable("a.pdf", "has no page 9"), 409, "a.pdf has no page 9.", "Its text is shown."),
    (errors.WebRefused("there is no password"), 400, "The page cannot be served: there is no password.", ""),
]


@pytest.mark.parametrize(
    ("error", "status", "sentence", "hint"), TABLE, ids=lambda value: type(value).__name__
)
def test_an_error_says_what_happened_and_is_sent_as_such(
    error: WebError, status: int, sentence: str, hint: str
) -> None:
    assert (str(error), error.hint) == (sentence, hint)
    assert error_document(error) == {"error": {"code": error.code, "message": sentence, "hint": hint}}
    assert error_response(error).status_code == status


def test_the_table_holds_every_error() -> None:
    assert {type(error) for error, *_ in TABLE} == set(WebError.__subclasses__())
