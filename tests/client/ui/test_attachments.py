"""What a question mentions with @, and the prompts of servers: real servers, and a model that a test plays.

Covers `ragchat.ingest.question_files` and `ragchat.servers.offers`.
"""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import anyio
import pytest
from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.document import Document

from ragchat.conversation import IMAGES_NOT_SAVED, Conversation
from ragchat.errors import AttachmentUnusable, UnknownPrompt
from ragchat.llm.selection import ModelSelection
from ragchat.servers.media import MAX_BYTES
from ragchat.turn.rounds import NO_IMAGES_TAKEN
from ragchat.ui.chat.messages import handle
from ragchat.ui.context import ChatContext
from ragchat.ui.prompt.toolbar import Status
from ragchat.ui.slash.completer import SlashCompleter
from tests.client.llm.test_client import settings as model_settings
from tests.client.ui.slash.test_table import Room
from tests.support.documents import archive, odt_members, pdf
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.screens import piped_screen
from tests.support.servers import GOOD, held_back, managed, tool, write
from tests.support.turns import ListMemory, settings_in


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer([Reply("Noted."), Reply("Noted again.")]) as server:
        yield server


@asynccontextmanager
async def opened(folder: Path, server: OpenAIServer, **servers: dict[str, Any]) -> AsyncIterator[Room]:
    """A chat with these servers and a model; the working folder has files."""
    (folder / "tea.md").write_text("Tea is brewed at 75 degrees.\n", "utf-8")
    (folder / "my notes.txt").write_bytes("Grün.\n".encode("cp1252"))
    (folder / "old notes").mkdir(exist_ok=True)
    (folder / "old notes/tea list.md").write_text("Tea.\n")
    (folder / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    write(folder, **servers)
    settings, (screen, out, err) = settings_in(folder), piped_screen()
    async with managed(folder) as manager, Conversation(settings, ListMemory(), manager) as conversation:
        chosen = model_settings()
        chosen.name, chosen.base_url = "test-model", server.base_url
        conversation.model = ModelSelection(chosen, {})
        yield Room(ChatContext(conversation, screen, Status(), interactive=True), out, err)


@pytest.fixture
async def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: OpenAIServer) -> AsyncIterator[Room]:
    """A chat without servers."""
    monkeypatch.chdir(tmp_path)
    async with opened(tmp_path, server) as room:
        yield room


@pytest.fixture
async def served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: OpenAIServer
) -> AsyncIterator[Room]:
    """A chat with the server `mine`."""
    monkeypatch.chdir(tmp_path)
    async with opened(tmp_path, server, mine=GOOD) as room:
        yield room


def sent(server: OpenAIServer) -> str:
    """The user's message in the last request."""
    return str(server.requests[-1]["messages"][-1]["content"])


async def completions(room: Room, text: str) -> list[str]:
    completer = SlashCompleter(lambda: room.context)
    found = completer.get_completions_async(Document(text), CompleteEvent())
    with anyio.fail_after(30):
        return [one.text async for one in found]


def notes(room: Room) -> str:
    """The notes on the screen, without the answers."""
    file = room.context.screen.err.file
    assert isinstance(file, StringIO)
    return file.getvalue()


async def failure(room: Room, text: str) -> str:
    """What the chat shows for a message that fails."""
    await handle(room.context, text)
    return notes(room)


async def test_a_file_is_attached_as_a_quoted_passage(room: Room, server: OpenAIServer) -> None:
    await handle(room.context, "What does @tea.md say?")
    assert "Tea is brewed at 75 degrees." in sent(server)
    assert "What does @tea.md say?" in sent(server)
    assert "Attached: tea.md (29 characters)" in notes(room)
    assert room.context.conversation.last_turn is not None
    assert room.context.conversation.last_turn.answer.untrusted == []


async def test_a_name_with_spaces_is_quoted_and_punctuation_does_not_belong_to_a_name(
    room: Room, server: OpenAIServer
) -> None:
    # Files are not sent to an embedder: none answers there.
    embedder = room.context.conversation.settings.tables["embedder"]
    embedder.update(kind="openai", base_url="http://127.0.0.1:9/v1")
    await handle(room.context, 'Compare @"my notes.txt" and @tea.md.')
    assert "Grün." in sent(server)
    assert "75 degrees" in sent(server)


async def test_other_words_with_an_at_sign_are_left_alone(room: Room, server: OpenAIServer) -> None:
    await handle(room.context, "Did @alice mail a@tea.md or @other:thing?")
    assert "Attached" not in notes(room)
    assert "75 degrees" not in sent(server)


async def test_a_file_that_is_neither_text_nor_an_image_is_refused(
    room: Room, server: OpenAIServer, tmp_path: Path
) -> None:
    (tmp_path / "noise.png").write_bytes(bytes(range(256)))
    shown = await failure(room, "What is in @noise.png?")
    assert "There is no text to ask about: noise.png is a damaged image file" in shown
    assert server.requests == []


async def test_a_file_is_read_as_ask_reads_it(room: Room, server: OpenAIServer, tmp_path: Path) -> None:
    (tmp_path / "crane.pdf").write_bytes(pdf(["It is yellow.", "The crane lifts 12 tonnes.", ""]))
    page = "<title>Ferries</title><script>steal()</script><p>The ferry leaves at 7.</p>"
    (tmp_path / "page.html").write_text(page, "utf-8")
    body = "<text:p>The <text:span>bridge</text:span> is closed.</text:p>"
    (tmp_path / "bridge.odt").write_bytes(archive(odt_members(body)))
    server.replies[:] = [Reply('It says "The crane lifts 12 tonnes." [1]')]
    await handle(room.context, "Sum up @crane.pdf, @page.html and @bridge.odt.")
    assert "The crane lifts 12 tonnes." in sent(server)
    assert "The ferry leaves at 7." in sent(server)
    assert "The bridge is closed." in sent(server)
    assert "%PDF" not in sent(server)
    assert "steal()" not in sent(server)
    assert "crane.pdf has no text on p. 3, which may be scanned." in notes(room)
    assert "Attached: crane.pdf" in notes(room)
    # A quotation is cited by its page.
    assert room.context.conversation.last_turn is not None
    assert [one.location for one in room.context.conversation.last_turn.answer.citations] == [
        "crane.pdf p. 2"
    ]


@pytest.mark.parametrize(
    ("mention", "name"),
    [
        ("@nosuch.txt", "nosuch.txt"),
        ("@nosuch.txt?", "nosuch.txt"),
        ("@notes/tea", "notes/tea"),
        ('@"my tea"', "my tea"),
    ],
)
async def test_a_path_that_does_not_exist_is_named_and_nothing_is_asked(
    room: Room, server: OpenAIServer, mention: str, name: str
) -> None:
    shown = await failure(room, f"Compare {mention} with @tea.md")
    assert f"@{name} cannot be attached: it does not exist" in shown
    assert server.requests == []


@pytest.mark.parametrize("word", ["@anna", "@anna,", "@2.0", "`@types/node`", "a@b.com", "@", "@..."])
async def test_a_word_that_is_not_a_path_is_ignored(room: Room, server: OpenAIServer, word: str) -> None:
    await handle(room.context, f"What is {word} about")
    assert word in sent(server)


async def test_a_folder_is_refused(room: Room, server: OpenAIServer, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    assert "@notes cannot be attached: it is a folder" in await failure(room, "Sum up @notes")
    assert server.requests == []


@pytest.mark.parametrize("name", ["sessions.db", "sessions.db-shm", "link.md"])
async def test_the_file_of_the_conversations_is_not_read(room: Room, name: str) -> None:
    await handle(room.context, "Hello")
    path = room.context.conversation.sessions.path
    path.with_name("link.md").symlink_to(path)
    shown = await failure(room, f"What is in @{path.with_name(name)} ?")
    assert "cannot be attached: it holds the saved conversations" in " ".join(shown.split())


async def test_lines_of_a_pipe_attach_nothing(room: Room, server: OpenAIServer) -> None:
    room.context.interactive = False
    await handle(room.context, "What does @tea.md say?")
    assert "75 degrees" not in sent(server)


async def test_without_a_model_nothing_can_be_attached(room: Room) -> None:
    settings = model_settings()
    settings.name = "offline"
    room.context.conversation.model = ModelSelection(settings, {})
    shown = await failure(room, "What does @tea.md say?")
    assert str(AttachmentUnusable("tea.md", "needs a language model, and none is in use")) in shown


async def test_a_resource_is_attached_and_is_foreign_text(served: Room, server: OpenAIServer) -> None:
    await handle(served.context, "What does @mine:note://welcome say?")
    assert "Grüße, 世界" in sent(server)
    assert "@mine:note://welcome" in sent(server)
    assert served.context.conversation.last_turn is not None
    assert served.context.conversation.last_turn.answer.untrusted == ["@mine:note://welcome"]


async def test_an_image_of_a_server_goes_to_the_model(served: Room, server: OpenAIServer) -> None:
    await handle(served.context, "What is on @mine:note://dot ?")
    assert "Attached: @mine:note://dot (an image)" in notes(served)
    text, image = server.requests[-1]["messages"][-1]["content"]
    assert "What is on @mine:note://dot ?" in text["text"]
    assert image == {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    assert served.context.conversation.last_turn is not None
    assert served.context.conversation.last_turn.answer.untrusted == ["@mine:note://dot"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0", "image/png"),
        (b"\xff\xd8\xff\xe0\0", "image/jpeg"),
        (b"GIF89a\0", "image/gif"),
        (b"RIFF\x10\x0a\0\0WEBPVP8 ", "image/webp"),
    ],
)
async def test_an_image_of_the_user_goes_to_the_model_whatever_its_name(
    room: Room, server: OpenAIServer, tmp_path: Path, content: bytes, kind: str
) -> None:
    (tmp_path / "photo.txt").write_bytes(content)
    await handle(room.context, "What is on @photo.txt?")
    assert "photo.txt (an image)" in notes(room)
    text, image = server.requests[-1]["messages"][-1]["content"]
    assert f"[{kind}, {len(content)} bytes]" in text["text"]
    assert image["image_url"]["url"] == f"data:{kind};base64,{b64encode(content).decode()}"
    assert room.context.conversation.last_turn is not None
    assert room.context.conversation.last_turn.answer.untrusted == []


async def test_a_model_that_takes_no_images_gets_their_names(room: Room, server: OpenAIServer) -> None:
    server.replies[:] = [Reply(status=400, message="image_url is not supported"), Reply("A dot.")]
    await handle(room.context, "What is on @dot.png?")
    assert "dot.png" in sent(server)
    assert "image_url" not in str(server.requests[-1])
    assert NO_IMAGES_TAKEN.format(model="test-model") in notes(room)


async def test_retry_sends_the_images_again_until_something_else_is_asked(
    room: Room, server: OpenAIServer
) -> None:
    await handle(room.context, "What is on @dot.png?")
    await room.run("/retry")
    await room.run("/retry")
    assert ["image_url" in str(request["messages"]) for request in server.requests] == [True] * 3
    await handle(room.context, "And why?")
    await room.run("/retry")
    assert "image_url" not in str(server.requests[-1]["messages"])


async def test_retry_says_that_the_images_of_a_resumed_conversation_are_not_sent(
    room: Room, server: OpenAIServer
) -> None:
    await handle(room.context, "What is on @dot.png?")
    await handle(room.context, "/retry")
    assert IMAGES_NOT_SAVED not in notes(room)
    session_id = room.context.conversation.session.session_id
    await handle(room.context, "/new")
    await handle(room.context, f"/resume {session_id}")
    await handle(room.context, "/retry")
    assert "image_url" not in str(server.requests[-1]["messages"])
    assert IMAGES_NOT_SAVED in notes(room)


async def test_an_image_that_is_too_large_is_refused(
    room: Room, server: OpenAIServer, tmp_path: Path
) -> None:
    content = b"\x89PNG\r\n\x1a\n" + bytes(MAX_BYTES)
    (tmp_path / "photo.png").write_bytes(content)
    shown = await failure(room, "What is on @photo.png?")
    assert f"is an image of {len(content):,} bytes; the limit is {MAX_BYTES:,}" in shown
    assert server.requests == []


async def test_a_resource_that_is_not_there_is_an_error(served: Room, server: OpenAIServer) -> None:
    shown = await failure(served, "Read @mine:note://gone to me")
    assert (
        "@mine:note://gone cannot be attached: it was not given by its server: There is no resource" in shown
    )
    assert server.requests == []


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes in folders are POSIX")
@pytest.mark.parametrize("text", ["Read @mine:note://welcome to me", "/mine:Summarize topic=tea"])
@pytest.mark.parametrize("is_first", [True, False])
async def test_a_prompt_and_a_resource_of_a_starting_server_wait_for_it(
    room: Room, server: OpenAIServer, tmp_path: Path, text: str, is_first: bool
) -> None:
    """Also in the first message, before the chat has started its servers."""
    write(tmp_path)
    room.context.conversation.servers.start()
    write(tmp_path, mine=held_back(gate := tmp_path / "gate"))
    if not is_first:
        room.context.conversation.servers.start()
    async with anyio.create_task_group() as group:
        group.start_soon(handle, room.context, text)
        await anyio.Path(gate).write_text("go\n")
    assert "Waiting for mine to start." in notes(room)
    assert server.requests


async def test_mentions_are_completed(served: Room) -> None:
    assert "a.md" not in await completions(served, "What does @te")
    assert "tea.md" in await completions(served, "What does @te")
    assert '"my notes.txt"' in await completions(served, "@my")
    assert "mine:" in await completions(served, "@mi")
    assert '"old notes/' in await completions(served, "@old")
    assert '"old notes/' in await completions(served, 'See @"ol')
    assert '"old notes/tea list.md"' in await completions(served, 'See @"old notes/')
    assert await completions(served, 'See @"old notes/tea list.md"') == []
    assert "note://welcome" in await completions(served, "@mine:wel")
    assert "note://named/" in await completions(served, "@mine:note://na")
    assert "note://named/playful" in await completions(served, "@mine:note://named/pl")
    assert await completions(served, "mail a@te") == []
    assert await completions(served, "@nothing:x") == []


async def test_a_prompt_of_a_server_is_filled_in_and_its_text_is_foreign(
    served: Room, server: OpenAIServer
) -> None:
    await served.run("/mine:Summarize topic=tea tone=poetic")
    assert "Summarize tea, poetic." in sent(server)
    assert "Summarize tea, poetic." in notes(served)
    assert served.context.conversation.last_turn is not None
    assert served.context.conversation.last_turn.answer.untrusted == ["the prompt mine:Summarize"]
    await served.run("/retry")
    assert served.context.conversation.last_turn.answer.untrusted == ["the prompt mine:Summarize"]


async def test_an_argument_of_a_prompt_without_a_value_is_not_sent(
    served: Room, server: OpenAIServer
) -> None:
    async def read(question: str, _: Completer) -> str:
        return "tea" if question == "topic: " else "  "

    served.context.read = read
    await served.run("/mine:Summarize")
    assert "Summarize tea, plain." in sent(server)


async def test_prompts_of_servers_are_completed_with_their_values(served: Room) -> None:
    assert "mine:Summarize " in await completions(served, "/mi")
    assert "mine:Summarize " in await completions(served, "/prompt mine:")
    assert await completions(served, "/mine:Summarize topic=tea tone=pl") == ["plain", "playful"]
    assert await completions(served, "/prompt mine:Summarize topic=tea tone=po") == ["poetic"]


async def test_a_prompt_of_a_server_whose_name_has_a_space_is_called_with_an_underscore(
    room: Room, server: OpenAIServer, tmp_path: Path
) -> None:
    write(tmp_path, **{"my own": GOOD})
    await room.run("/mcp reload")
    assert "my_own:Summarize " in await completions(room, "/my")
    assert await completions(room, "/my_own:Summarize topic=tea tone=po") == ["poetic"]
    await room.run("/my_own:Summarize topic=tea")
    assert "Summarize tea, plain." in sent(server)


async def test_a_prompt_that_its_server_does_not_fill_in_is_named(served: Room) -> None:
    shown = await failure(served, "/mine:Summarize topic=nothing")
    assert "The server of the prompt mine:Summarize did not fill it in: " in shown


async def test_an_unknown_prompt_of_a_server_is_an_error(served: Room) -> None:
    with pytest.raises(UnknownPrompt, match="mine:Sumarize"):
        await served.run("/mine:Sumarize")


async def test_a_server_that_fails_has_no_resources_and_no_prompts_to_complete(served: Room) -> None:
    assert not (await tool(served.context.conversation.servers, "mine__Die").call({})).ok
    assert await completions(served, "/nothing:") == []
