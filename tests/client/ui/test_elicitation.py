"""Forms and pages of servers, as the user is asked about them."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from msgspec import UNSET, UnsetType

from ragchat.ui.elicitation import Elicitation
from ragmcp.protocol.schema.input import Elicit, ElicitResult
from tests.support.dialogs import ScriptedDialog

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "description": "As on your passport."},
        "age": {"type": "integer", "minimum": 18, "default": 30},
    },
    "required": ["name"],
}


async def fill_in(user: ScriptedDialog, schema: dict[str, Any] = FORM) -> ElicitResult:
    request = Elicit(message="Who are you?", requested_schema=schema)
    return await Elicitation(user, user.show).answer("github", request)


async def visit(user: ScriptedDialog, url: str, id: str | UnsetType = "1") -> ElicitResult:
    request = Elicit(message="Log in there.", mode="url", url=url, elicitation_id=id)
    return await Elicitation(user, user.show).answer("github", request)


async def test_each_field_is_asked_for_and_checked_and_the_form_sent_after_a_last_look() -> None:
    user = ScriptedDialog(["", "Ada", "17", "forty", "40", "y"])
    result = await fill_in(user)
    assert (result.action, result.content) == ("accept", {"name": "Ada", "age": 40})
    assert user.shown[0] == "github asks: Who are you?"
    assert "Your name (text). As on your passport." in user.shown
    assert "age (whole number, at least 18, may be left out)." in user.shown
    assert {"It must be filled in.", "It must be at least 18.", "Type a whole number."} <= {*user.shown}


async def test_a_field_that_is_not_required_may_be_left_out() -> None:
    assert (await fill_in(ScriptedDialog(["Ada", "", ""]))).content == {"name": "Ada"}


async def test_a_form_can_be_edited_before_it_is_sent() -> None:
    result = await fill_in(ScriptedDialog(["Ada", "40", "e", "Grace", "", "y"]))
    assert result.content == {"name": "Grace"}


@pytest.mark.parametrize(
    ("replies", "action"),
    [
        ([None], "cancel"),
        (["Ada", None], "cancel"),
        (["Ada", "40", None], "cancel"),
        (["Ada", "40", "c"], "cancel"),
        (["/decline"], "decline"),
        (["Ada", "/decline"], "decline"),
        (["Ada", "40", "d"], "decline"),
        (["Ada", "40", "decline"], "decline"),
        (["Ada", "40", "yikes", "d"], "decline"),
        (["Ada", "40", "not yet", None], "cancel"),
    ],
)
async def test_the_user_can_decline_and_cancel_at_every_point(replies: list[str | None], action: str) -> None:
    result = await fill_in(ScriptedDialog(replies))
    assert (result.action, result.content) == (action, {})


async def test_a_field_for_a_password_is_warned_of() -> None:
    user = ScriptedDialog([None])
    await fill_in(user, {"properties": {"password": {"type": "string"}}})
    assert any("looks like a password" in line for line in user.shown)


async def test_a_page_is_opened_only_with_consent_to_its_full_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []

    def browser(url: str) -> bool:
        opened.append(url)
        return False

    monkeypatch.setattr("webbrowser.open", browser)
    url = "https://login.example.com/start?code=1"
    cases: list[tuple[list[str | None], str]] = [
        ([None], "cancel"),
        ([""], "decline"),
        (["n"], "decline"),
        (["yikes", "n"], "decline"),
        (["c"], "cancel"),
    ]
    for replies, action in cases:
        assert (await visit(ScriptedDialog(replies), url)).action == action
    assert opened == []
    user = ScriptedDialog(["y"])
    assert (await visit(user, url)).action == "accept"
    assert opened == [url]
    assert [f"  Address: {url}", "  Host:    login.example.com"] == user.shown[1:3]
    assert "No browser was found: open the address yourself." in user.shown


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/passwd", "javascript:alert(1)", "https://", "http://[", ""),
        *("https://a.example/ b", "https://a.example/\n  Host:    b.example", "https://a.example/\u202eb"),
        "https://127.0.0.1\\@a.example/",
    ],
)
async def test_an_address_that_is_not_a_web_page_is_declined_without_asking(url: str) -> None:
    user = ScriptedDialog()
    assert (await visit(user, url)).action == "decline"
    assert user.asked == []


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://github.com@evil.example/", "evil.example"),
        ("https://gíthub.com/", "xn--gthub-zsa.com"),
    ],
)
async def test_a_host_that_looks_like_another_is_shown_for_what_it_is(url: str, host: str) -> None:
    user = ScriptedDialog(["n"])
    await visit(user, url)
    assert any(f"Host:    {host}" in line for line in user.shown)


@pytest.mark.parametrize(
    ("url", "warned"),
    [("https://a.example/", False), ("https://[::ffff:10.0.0.1]/", True), ("http://localhost:80/", True)],
)
async def test_a_page_in_the_user_s_own_network_is_warned_of(url: str, warned: bool) -> None:
    user = ScriptedDialog(["n"])
    await visit(user, url)
    assert any("your own network" in line for line in user.shown) is warned


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pages that the browser was opened on."""
    opened: list[str] = []

    def browser(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr("webbrowser.open", browser)
    return opened


@pytest.mark.parametrize(("reply", "action"), [("", "accept"), (None, "cancel")])
async def test_a_server_that_cannot_wait_gets_its_answer_once_the_user_is_done(
    opened: list[str], reply: str | None, action: str
) -> None:
    user = ScriptedDialog(["y", reply])
    assert (await visit(user, "https://example.com/", UNSET)).action == action
    assert opened == ["https://example.com/"]
    assert user.asked[1].startswith("Press Enter when you are done there.")


@pytest.mark.parametrize(
    ("replies", "went"), [(["y", ""], True), (["y", None], False), (["n"], False), ([None], False)]
)
async def test_a_visit_lasts_until_the_user_says_so(
    opened: list[str], replies: list[str | None], went: bool
) -> None:
    user = ScriptedDialog(replies)
    request = Elicit(message="Log in there.", mode="url", url="https://example.com/")
    assert await Elicitation(user, user.show).visit("github", request, anyio.Event()) is went
    assert len(opened) == (replies[0] == "y")


async def test_a_visit_ends_when_the_server_says_so(opened: list[str]) -> None:
    class Waiting(ScriptedDialog):
        async def _reply(self, question: str, *_: Any) -> str | None:
            if not question.startswith("Press Enter"):
                return "y"
            done.set()
            await anyio.sleep_forever()
            return None

    done, user = anyio.Event(), Waiting()
    request = Elicit(message="Log in there.", mode="url", url="https://example.com/")
    with anyio.fail_after(5):
        assert await Elicitation(user, user.show).visit("github", request, done)
    assert opened == [request.url]


async def test_a_message_cannot_pass_for_the_address_of_its_page(opened: list[str]) -> None:
    user = ScriptedDialog(["n"])
    message = "Log in.\n  Address: https://bank.example/\n  Host:    bank.example"
    request = Elicit(message=message, mode="url", url="https://evil.example/", elicitation_id="1")
    await Elicitation(user, user.show).answer("github", request)
    assert [text.lstrip().split()[0] for text in user.shown] == ["github", "Address:", "Host:"]
    assert "\n" not in user.shown[0]
    assert opened == []
