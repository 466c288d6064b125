"""The conversations: pages of turns, search, names, copies, deleting, files (`export`, `showing`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ragchat.conversation import SaveMode
from ragchat.sessions.store import SessionStore, sessions_path
from ragconfig.settings import load_settings
from tests.client.web.test_completions import door
from tests.support.browser import serving
from tests.support.program import Program
from tests.support.turns import turn
from tests.support.webchat import ask, last_event, new_session

pytestmark = pytest.mark.full


def store_of(program: Program) -> SessionStore:
    return SessionStore(sessions_path(load_settings(environ=program.variables, folder=program.folder)))


async def test_turns_come_in_pages_from_the_newest(program: Program) -> None:
    async with store_of(program) as store:
        for number in range(50):
            await store.save_turn(turn(f"Question {number}?", turn_id=f"{number:x}", session_id="abc"))
    async with serving(program) as web:
        with web.signed_in() as client:
            newest = client.get("/api/sessions/abc").json()
            assert [one["question"] for one in newest["turns"]][::19] == ["Question 30?", "Question 49?"]
            assert newest["has_more"]
            first = newest["turns"][0]["turn_id"]
            older = client.get("/api/sessions/abc", params={"before": first}).json()
            assert older["turns"][-1]["question"] == "Question 29?"
            oldest = client.get("/api/sessions/abc", params={"before": older["turns"][0]["turn_id"]}).json()
            assert (oldest["turns"][0]["question"], oldest["has_more"]) == (
                "Question 0?",
                False,
            )
            later = client.get("/api/sessions/abc", params={"start": f"{7:x}"}).json()
            assert (later["turns"][0]["question"], later["has_more"]) == ("Question 7?", True)


async def test_a_session_is_named_copied_found_and_deleted(program: Program) -> None:
    async with serving(program) as web:
        with web.signed_in() as client:
            session = new_session(client)
            assert client.get(f"/api/sessions/{session}").status_code == 409  # no turn yet
            first = ask(client, session, "What is tea?", last="")
            second = ask(client, session, "What is coffee?", last=first["turn_id"])
            client.post(f"/api/sessions/{session}/title", json={"title": "Drinks\u202e"}).raise_for_status()
            assert client.get("/api/sessions").json()["sessions"][0]["title"] == "Drinks\ufffd"

            path = f"/api/sessions/{session}/fork"
            fork = client.post(path, json={"before": second["turn_id"]}).json()
            assert fork["turns"] == 1
            copied = client.get(f"/api/sessions/{fork['session_id']}").json()
            assert [one["question"] for one in copied["turns"]] == ["What is tea?"]
            assert copied["title"] == "Drinks\ufffd (fork)"
            assert copied["turns"][0]["turn_id"] != first["turn_id"]
            ask(client, fork["session_id"], "What is cocoa?", last=copied["turns"][0]["turn_id"])
            assert len(client.get(f"/api/sessions/{session}").json()["turns"]) == 2
            empty = client.post(path, json={"before": first["turn_id"]}).json()
            assert empty["turns"] == 0
            ask(client, empty["session_id"], "What is water?", last="")

            found = client.get("/api/sessions", params={"q": "cocoa"}).json()["sessions"]
            assert [one["session_id"] for one in found] == [fork["session_id"]]
            client.delete(f"/api/sessions/{session}").raise_for_status()
            assert client.get(f"/api/sessions/{session}").status_code == 409
            assert client.delete(f"/api/sessions/{session}").status_code == 200


async def test_a_page_that_was_left_behind_is_told_so(program: Program) -> None:
    async with serving(program) as web:
        with web.signed_in() as client:
            session = new_session(client)
            seen = ask(client, session, "What is tea?", last="")["turn_id"]
            ask(client, session, "What is coffee?", last=seen)
            late = last_event(client, session, "What is cocoa?", last=seen)
            assert late["error"]["code"] == "SESSION_CHANGED"
            # A terminal that continues the session counts as well.
            program("ask", "What is water?", "--session", session)
            newest = client.get(f"/api/sessions/{session}").json()["turns"][-1]
            assert newest["question"] == "What is water?"
            ask(client, session, "What is cocoa?", last=newest["turn_id"])
            assert len(client.get(f"/api/sessions/{session}").json()["turns"]) == 4


async def test_a_first_turn_that_is_not_stored_yet_is_listed_and_shown_as_asked(
    tmp_path: Path,
) -> None:
    async with door(tmp_path) as opened:
        chats = opened.site.chats
        session = (await chats.new()).session.session_id
        chats.begin(session, "Why is\nthe sky blue?")
        async with chats.taking_turn(session) as chat:
            chat.save_mode = SaveMode.NOTHING
            await chat.ask("Why is\nthe sky blue?")
        opened.client.headers.update(opened.browser)
        shown = (await opened.client.get(f"/api/sessions/{session}")).json()
        assert (shown["asked"], shown["turns"]) == ("Why is\nthe sky blue?", [])
        listed = (await opened.client.get("/api/sessions")).json()["sessions"]
        assert [one["title"] for one in listed] == ["Why is the sky blue?"]


async def test_files_of_a_conversation_are_attachments_without_markup_of_its_texts(program: Program) -> None:
    hostile = "<script>alert(1)</script> & <img src=x onerror=alert(1)>"
    async with store_of(program) as store:
        await store.save_turn(replace(turn(hostile, f"*Yes* {hostile}", session_id="abc")))
    async with serving(program) as web:
        with web.signed_in() as client:
            html = client.get("/api/sessions/abc/export", params={"as": "html"})
            assert html.headers["content-disposition"] == 'attachment; filename="ragchat-abc.html"'
            assert "<script" not in html.text
            assert html.text.endswith("\n<!-- exported by ragchat -->\n")
            assert "<img" not in html.text
            assert "<em>Yes</em>" in html.text
            markdown = client.get("/api/sessions/abc/export", params={"as": "markdown"})
            assert markdown.headers["content-disposition"] == 'attachment; filename="ragchat-abc.md"'
            assert markdown.text.startswith("# ")
