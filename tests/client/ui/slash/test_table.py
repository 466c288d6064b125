"""The slash commands, on a real memory and real sessions, without a terminal.

Covers `table` and its actions: `answers`, `code`, `documents`, `sessions`, `tuning`.

Covers `ragchat.ui.context`, `ragchat.ui.chat.messages` and `ragchat.ui.welcome`.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from msgspec.structs import replace
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from ragchat.conversation import Conversation
from ragchat.errors import (
    ArgumentMissing,
    CommandNotPossible,
    FileAlreadyExists,
    NothingToRetry,
    NotWritable,
    PlaceUnusable,
    RagChatError,
    SessionsUnavailable,
    UnexpectedArgument,
    UnknownCommand,
    UnknownRole,
)
from ragchat.llm.selection import ModelSelection
from ragchat.sessions.store import SessionStore
from ragchat.ui.chat.messages import handle
from ragchat.ui.context import ChatContext
from ragchat.ui.prompt.toolbar import Status
from ragchat.ui.slash import table as slash
from ragchat.ui.slash.completer import SlashCompleter
from ragchat.ui.slash.documents import split_paths
from tests.client.llm.test_client import settings as model_settings
from tests.support.memory import memory_in
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.screens import piped_screen
from tests.support.turns import FLAWED, FLAWS, no_servers, settings_in

NAMES = (
    *(
        "help",
        "inject",
        "index",
        "sync",
        "research",
        "query",
        "trace",
        "in",
        "notebook",
        "prompt",
        "sources",
        "open",
        "more",
        "good",
        "bad",
        "stale",
        "why",
        "reasoning",
        "memory",
        "forget",
        "undo",
        "model",
        "mcp",
        "tools",
        "system",
    ),
    *("role", "new", "sessions", "resume", "export", "retry", "copy", "clear", "quit"),
)


class Room:
    """A chat without a terminal, and what it has shown."""

    def __init__(self, context: ChatContext, out: io.StringIO, err: io.StringIO) -> None:
        self.context = context
        self._out, self._err = out, err

    async def run(self, line: str) -> str:
        """What a command shows, on stdout and stderr."""
        before = len(self._out.getvalue()), len(self._err.getvalue())
        await slash.run(self.context, line)
        return self._out.getvalue()[before[0] :] + self._err.getvalue()[before[1] :]

    async def say(self, line: str) -> str:
        before = len(self._out.getvalue()), len(self._err.getvalue())
        await handle(self.context, line)
        return self._out.getvalue()[before[0] :] + self._err.getvalue()[before[1] :]


@asynccontextmanager
async def open_room(folder: Path) -> AsyncIterator[Room]:
    screen, out, err = piped_screen()
    settings = settings_in(folder / "home")
    async with (
        memory_in(folder / "home") as memory,
        Conversation(settings, memory, no_servers(settings)) as conversation,
    ):
        yield Room(ChatContext(conversation, screen, Status()), out, err)


@pytest.fixture
async def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Room]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tea.md").write_text("# Tea\n\nGreen tea is brewed at 75 degrees for two minutes.\n", "utf-8")
    (tmp_path / "my coffee.md").write_text("# Coffee\n\nEspresso is pressed at nine bar.\n", "utf-8")
    async with open_room(tmp_path) as room:
        yield room


@pytest.fixture
async def asked(room: Room) -> Room:
    """With two documents, and one question answered."""
    await room.run("/inject .")
    await room.say("How hot is green tea brewed?")
    return room


async def test_the_last_answer_is_judged_and_its_document_watched(asked: Room, tmp_path: Path) -> None:
    assert await asked.run("/good") == "Saved: the answer is in tea.md:3. `ragchat eval` asks again.\n"
    assert "notes.md:3-5, or nowhere" in await asked.run("/bad")
    assert "still stands" in await asked.run("/stale")
    await asked.context.memory.inject("Empty.", {"uri": (tmp_path / "tea.md").as_uri()})
    assert "How hot is green tea brewed?" in await asked.run("/stale")


async def test_after_a_question_without_an_answer_the_answer_before_is_named(asked: Room) -> None:
    before = "The last question has no answer. This is about: How hot is green tea brewed?\n"
    offline = asked.context.conversation.model
    with OpenAIServer([Reply(status=401, message="no")]) as server:
        asked.context.conversation.model = ModelSelection(
            replace(model_settings(), name="test-model", base_url=server.base_url), {}
        )
        assert "needs a key" in await asked.say("What is pressed at nine bar?")
        for line in ("/good", "/bad nowhere", "/why", "/sources"):
            assert before in await asked.run(line)
        await asked.context.conversation.model.aclose()
    asked.context.conversation.model = offline
    assert "Espresso" in await asked.run("/retry")
    assert before not in await asked.run("/why")


def test_the_table_has_every_command_once_with_help_for_each() -> None:
    assert [command.name for command in slash.COMMANDS] == list(NAMES)
    assert all(command.help and command.help[0].islower() for command in slash.COMMANDS)
    assert len(slash.BY_NAME) == sum(1 + len(command.aliases) for command in slash.COMMANDS)


@pytest.mark.parametrize(
    ("line", "parsed"),
    [
        ("/why", ("why", "")),
        ("/inject  a b ", ("inject", "a b")),
        ("/inject\ta", ("inject", "a")),
        ("/", ("", "")),
        ("/system one\ntwo", ("system", "one\ntwo")),
    ],
)
def test_a_line_is_a_name_and_the_rest(line: str, parsed: tuple[str, str]) -> None:
    assert slash.parse(line) == parsed


@pytest.mark.parametrize(
    ("error", "sentence", "hint"),
    [
        (
            UnknownCommand("foget", ["forget"]),
            "There is no command /foget.",
            "Did you mean /forget? /help lists the commands; //foget sends it as text.",
        ),
        (UnknownCommand("x"), "There is no command /x.", "/help lists the commands; //x sends it as text."),
        (
            CommandNotPossible("why", "there is no answer yet"),
            "/why is not possible now: there is no answer yet.",
            "",
        ),
        (ArgumentMissing("query", "words"), "/query needs words.", ""),
        (FileAlreadyExists("a.md"), "a.md already exists.", "Choose another name; nothing is overwritten."),
    ],
)
def test_errors_say_what_happened_and_what_to_do(error: RagChatError, sentence: str, hint: str) -> None:
    assert (str(error), error.hint) == (sentence, hint)


async def test_an_unknown_command_suggests_the_nearest_and_is_a_failure(room: Room) -> None:
    assert "Did you mean /forget?" in await room.say("/foget x")
    assert room.context.failures == 1


async def test_two_slashes_send_text_that_begins_with_one(asked: Room) -> None:
    await asked.say("//tea is what?")
    assert asked.context.conversation.last_turn is not None
    assert asked.context.conversation.last_turn.question == "/tea is what?"


async def test_only_some_documents_can_be_asked(asked: Room) -> None:
    assert "All documents are asked." in await asked.run("/in")
    shown = await asked.run("/in coffee")
    assert shown == "Only coffee is asked (1 document). /in * asks all documents again.\n"
    assert await asked.run('/in "coffee"') == shown
    assert asked.context.status.scope == "coffee"
    assert "Green tea" not in await asked.run("/query green tea")
    await asked.say("How hot is green tea brewed?")
    assert asked.context.conversation.last_turn is not None
    uris = {candidate.hit.uri for candidate in asked.context.conversation.last_turn.answer.candidates}
    assert not any("tea.md" in uri for uri in uris)
    assert "No document in memory matches milk." in await asked.say("/in milk")
    assert asked.context.status.scope == "coffee"
    assert "All documents are asked." in await asked.run("/in *")
    assert "Green tea" in await asked.run("/query green tea")


@pytest.mark.parametrize("words", ["coffee", "my coffee.md", "*coffee*", "COFF"])
async def test_documents_are_listed_by_the_names_that_are_shown(asked: Room, words: str) -> None:
    shown = await asked.run(f"/memory {words}")
    assert "my coffee.md" in shown
    assert "tea.md" not in shown


async def test_a_glob_forgets_several_documents_if_that_is_confirmed(asked: Room) -> None:
    questions: list[str] = []
    replies = [False, True]

    async def confirm(question: str) -> bool:
        questions.append(question)
        return replies.pop(0)

    assert "2 documents match *.md." in await asked.say("/forget *.md")
    asked.context.confirm = confirm
    assert await asked.run("/forget *.md") == "Nothing is removed.\n"
    assert await asked.run("/forget *.md") == "Removed 2 documents. /undo restores them.\n"
    assert questions == ["Remove 2 documents?"] * 2
    assert asked.context.status.documents == 0
    assert await asked.run("/undo") == (
        "Undone: 2 documents were removed. What was removed is back in memory.\n"
    )
    assert asked.context.status.documents == 2


async def test_a_folder_is_loaded_and_undone_as_one(asked: Room, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / "more" / f"{name}.md").parent.mkdir(exist_ok=True)
        (tmp_path / "more" / f"{name}.md").write_text(f"Text {name}.", encoding="utf-8")
    await asked.run(f"/inject {tmp_path / 'more'}")
    assert asked.context.status.documents == 5
    assert await asked.run("/undo") == "Undone: 3 documents were added.\n"
    assert asked.context.status.documents == 2


async def test_a_citation_is_opened_only_at_a_terminal_and_by_its_number(asked: Room) -> None:
    assert "it needs a terminal" in await asked.say("/open")
    asked.context.interactive = True
    assert "the last answer has no citation 9" in await asked.say("/open 9")


async def test_the_line_about_the_missing_model_is_shown_once_a_conversation(asked: Room) -> None:
    assert "No language model" not in await asked.say("How hot is green tea brewed?")
    await asked.run("/new")
    assert "No language model" in await asked.say("How hot is green tea brewed?")


async def test_help_lists_every_command_or_explains_one(room: Room) -> None:
    shown = await room.run("/help")
    assert all(f"/{name}" in shown for name in NAMES)
    assert (await room.run("/help /why")).startswith("/why")
    assert "/exit" in await room.run("/? quit")
    with pytest.raises(UnknownCommand):
        await room.run("/help nothing")
    assert await room.run("/") == shown


@pytest.mark.parametrize(
    ("typed", "meant"), [("/add notes.md", "inject"), ("/RM a", "forget"), ("/wy", "why")]
)
async def test_an_unknown_command_names_the_one_that_is_meant(room: Room, typed: str, meant: str) -> None:
    with pytest.raises(UnknownCommand) as caught:
        await room.run(typed)
    assert f"Did you mean /{meant}?" in caught.value.hint


def test_the_words_of_other_programs_name_our_commands() -> None:
    assert not slash.OTHER_WORDS.keys() & slash.BY_NAME.keys()
    assert set(slash.OTHER_WORDS.values()) <= slash.BY_NAME.keys()


async def test_inject_loads_files_and_says_how_many(room: Room) -> None:
    assert "2 added" in await room.run("/inject .")
    assert "1 unchanged" in await room.run("/inject my coffee.md")
    assert room.context.status.documents == 2
    assert "does not exist" in await room.run("/inject nowhere.md")
    assert room.context.failures == 1
    with pytest.raises(ArgumentMissing):
        await room.run("/inject")


async def test_inject_prunes_on_demand_and_names_an_unknown_option(room: Room, tmp_path: Path) -> None:
    (tmp_path / "old teas").mkdir()
    for name in ("mint", "sage"):
        (tmp_path / f"old teas/{name}.md").write_text(f"{name} is brewed at 95 degrees.", encoding="utf-8")
    await room.run("/inject old teas")
    (tmp_path / "old teas/mint.md").unlink()
    for line in ("/inject --purge .", "/inject -v .", "/sync --prune", f"/inject -{'x' * 300}"):
        with pytest.raises(UnexpectedArgument, match=r"^/\w+ takes no option -"):
            await room.run(line)
    with pytest.raises(ArgumentMissing):
        await room.run("/inject --prune")
    assert "1 unchanged, 1 removed" in await room.run("/inject --prune old teas")
    assert room.context.failures == 0


async def test_an_empty_path_loads_nothing(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "private.md").write_text("Not meant for memory.", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert '"" does not exist.' in await room.run('/inject ""')
    assert (await room.context.memory.stats()).documents == 0


async def test_inject_lists_skipped_files_up_to_a_limit(room: Room, tmp_path: Path) -> None:
    for number in range(15):
        (tmp_path / f"{number}.doc").write_bytes(b"%PDF")
    shown = await room.run("/inject .")
    assert shown.count(".doc is in a format that is not read: save it as .docx") == 10
    assert "skipped: 5 more" in shown
    assert "2 added, 15 skipped" in shown


async def test_inject_readme_loads_the_projects_own(room: Room) -> None:
    assert "The README is in memory" in await room.run("/inject readme")
    assert "ragchat:README.md" in await room.run("/memory")


async def test_an_offered_readme_is_loaded_by_y_and_refused_by_n_while_memory_is_empty(room: Room) -> None:
    room.context.readme_offered = True
    assert "/inject" in await room.say("n")
    assert "Memory is empty" in await room.say("y")
    room.context.readme_offered = True
    assert "Memory is empty" in await room.say("What is this?")
    assert "The README is in memory" in await room.say("Y")
    await room.say("y")
    assert room.context.conversation.last_turn is not None
    assert room.context.conversation.last_turn.question == "y"


async def test_query_shows_passages_with_place_and_score(asked: Room) -> None:
    shown = await asked.run("/query green tea")
    assert "[1] tea.md:" in shown
    assert "75 degrees" in shown
    with pytest.raises(ArgumentMissing):
        await asked.run("/query")


async def test_trace_shows_the_uses_of_a_name_in_source_code(room: Room, tmp_path: Path) -> None:
    (tmp_path / "disk.py").write_text("def load(name):\n    return open(name)\n", "utf-8")
    (tmp_path / "store.py").write_text(
        "from disk import load\n\n\ndef find():\n    return load(1)\n", "utf-8"
    )
    await room.run("/inject disk.py store.py")
    shown = await room.run("/trace load")
    assert "load  function  disk.py:1" in shown
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert lines[lines.index("Called by") + 1] == "find store.py:5 return load(1)"
    assert lines[lines.index("Imported by") + 1] == "(top level) store.py:1 from disk import load"
    assert lines[lines.index("Calls") + 1] == "open disk.py:2 return open(name)"
    lines = [" ".join(line.split()) for line in (await room.run("/trace find")).splitlines()]
    assert lines[lines.index("Calls") + 1] == "load store.py:5 return load(1) defined in disk.py:1"
    for name in ("tape", "cloud"):
        (tmp_path / f"{name}.py").write_text("def load(name):\n    return name\n", "utf-8")
    (tmp_path / "store.py").write_text("def find(disk):\n    return disk.load(1)\n", "utf-8")
    await room.run("/inject tape.py cloud.py store.py")
    assert "defined in 3 places" in await room.run("/trace find")
    assert "Memory does not hold the definition of open." in await room.run("/trace open")
    assert "no source code with a symbol nothing" in await room.run("/trace nothing")
    with pytest.raises(ArgumentMissing):
        await room.run("/trace")


async def test_on_a_narrow_screen_trace_shortens_lines_of_code_before_places(
    room: Room, tmp_path: Path
) -> None:
    (tmp_path / "disk.py").write_text("def load(name):\n    pass\n", "utf-8")
    use = f"load({', '.join(f'argument_{n}=1' for n in range(12))})"
    (tmp_path / "store_of_documents.py").write_text(f"def find_a_document():\n    return {use}\n", "utf-8")
    await room.run("/inject disk.py store_of_documents.py")
    room.context.screen.out.width = 100
    shown = await room.run("/trace load")
    assert "  find_a_document  store_of_documents.py:2  return load(argument_0=1, " in shown
    assert "…" in shown


async def test_on_a_narrow_screen_trace_folds_long_names_before_places(room: Room, tmp_path: Path) -> None:
    (tmp_path / "disk.py").write_text("def load(name):\n    pass\n", "utf-8")
    use = f"def test_{'a_document_' * 5}():\n    return load({', '.join('abcdefghijklmnopqrst')})\n"
    (tmp_path / "test_documents.py").write_text(use, "utf-8")
    await room.run("/inject disk.py test_documents.py")
    room.context.screen.out.width = 80
    assert "test_documents.py:2" in await room.run("/trace load")


async def test_sources_shows_the_cited_passages_in_full(asked: Room) -> None:
    shown = await asked.run("/sources")
    assert "[1] tea.md:" in shown
    assert "for two minutes." in shown
    assert "for two minutes." in await asked.run("/sources 1")
    with pytest.raises(CommandNotPossible):
        await asked.run("/sources 99")


async def test_a_passage_that_is_cited_by_several_numbers_is_shown_once_with_all(
    room: Room, tmp_path: Path
) -> None:
    text = "§ 1 Flat\n\nIt has two rooms.\n\n§ 2 Rent\n\nIt is 800 euros.\n"
    (tmp_path / "lease.txt").write_text(text, "utf-8")
    await room.run("/inject .")
    await room.say("Summarise lease.txt")
    for command in ("/sources", "/sources 2"):
        shown = await room.run(command)
        assert "[1] [2] lease.txt" in shown
        assert shown.count("It has two rooms.") == 1


async def test_more_shows_the_next_cards_until_there_are_none(room: Room, tmp_path: Path) -> None:
    for n in range(1, 9):
        text = f"# House {n}\n\nThe pump of house {n} was repaired by Carl{n} for {n * 40} euros.\n"
        (tmp_path / f"house{n}.md").write_text(text, "utf-8")
    await room.run("/inject .")

    def numbers(shown: str) -> list[int]:
        return [int(n) for n in re.findall(r"^\[(\d+)\] house", shown, re.MULTILINE)]

    assert numbers(await room.say("Who repaired the pump of the house?")) == [1, 2, 3]
    assert "the last answer has no passage 4" in await room.say("/sources 4")
    assert numbers(await room.run("/more")) == [4, 5, 6]
    assert "[4] house" in await room.run("/sources 4")
    assert "Passages: 6 of 8 used" in (why := await room.run("/why"))
    assert why.count("yes: shown") == 6
    with pytest.raises(PlaceUnusable, match="no source of this number"):
        await room.run("/good 7")
    assert numbers(await room.run("/more")) == [7, 8]
    with pytest.raises(CommandNotPossible, match="the last answer has no further cards"):
        await room.run("/more")


async def test_without_further_cards_more_says_so(asked: Room) -> None:
    await asked.run("/in tea.md")
    await asked.say("How hot is green tea brewed?")
    assert "the last answer has no further cards" in await asked.say("/more")
    await asked.say("Thanks!")
    assert "the last answer has no further cards" in await asked.say("/more")


async def test_why_shows_candidates_and_times(asked: Room) -> None:
    shown = await asked.run("/why")
    assert "tea.md" in shown
    assert "Times: retrieval" in shown


@pytest.mark.parametrize("name", ["sources", "more", "why", "export"])
async def test_commands_about_an_answer_need_one(room: Room, name: str) -> None:
    with pytest.raises(CommandNotPossible, match="there is no answer yet"):
        await room.run(f"/{name}")


async def test_retry_needs_a_question_and_no_answer(room: Room) -> None:
    with pytest.raises(NothingToRetry):
        await room.run("/retry")


@pytest.mark.parametrize("name", ["copy", "clear"])
async def test_commands_about_the_terminal_need_one(asked: Room, name: str) -> None:
    with pytest.raises(CommandNotPossible, match="it needs a terminal"):
        await asked.run(f"/{name}")


async def test_memory_lists_documents_and_sums(asked: Room) -> None:
    shown = await asked.run("/memory")
    assert "tea.md" in shown
    assert "my coffee.md" in shown
    assert "2 documents" in shown
    assert "my coffee" not in await asked.run("/memory *tea*")
    assert "No document matches zz*." in await asked.run("/memory zz*")


async def test_forgetting_can_be_undone(asked: Room) -> None:
    assert "Removed tea.md" in await asked.run("/forget tea.md")
    assert asked.context.status.documents == 1
    assert "tea.md" in await asked.run("/undo")
    assert asked.context.status.documents == 2


async def test_the_model_can_be_shown_and_set(room: Room) -> None:
    assert "* offline" in await room.run("/model")
    assert "The model is now offline." in await room.run("/model offline")
    assert room.context.status.model == "offline"


async def test_the_system_prompt_can_be_shown_set_and_reset(room: Room) -> None:
    first = await room.run("/system")
    assert "is changed for this chat" in await room.run("/system Answer in rhymes.")
    assert (await room.run("/system")).strip() == "Answer in rhymes."
    assert await room.run("/system reset") == "The system prompt is reset.\n"
    assert await room.run("/system") == first


@pytest.mark.skipif("sys.platform == 'win32'", reason="the editor of this test is a shell command")
async def test_the_system_prompt_can_be_written_in_an_editor(
    room: Room, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho 'In rhymes.' > \"$1\"\n")
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    with pytest.raises(CommandNotPossible, match="it needs a terminal"):
        await room.run("/system edit")
    room.context.interactive = True
    await room.run("/system edit")
    assert (await room.run("/system")).strip() == "In rhymes."


async def test_a_past_conversation_is_listed_found_and_resumed(asked: Room) -> None:
    past = asked.context.conversation.session.session_id
    await asked.run("/new")
    assert asked.context.conversation.last_turn is None
    assert past in await asked.run("/sessions")
    assert past in await asked.run("/sessions green tea")
    assert "No conversation matches." in await asked.run("/sessions zebra")
    shown = await asked.run(f"/resume {past[:6]}")
    assert "How hot is green tea brewed?" in shown
    assert "> Green tea is brewed at 75 degrees" in shown  # on a pipe as it was written
    assert asked.context.conversation.session.session_id == past
    await asked.run("/new")
    await asked.run("/resume")
    assert asked.context.conversation.session.session_id == past


async def test_a_resumed_answer_is_marked_with_what_the_checks_found(room: Room) -> None:
    await room.context.conversation.sessions.save_turn(FLAWED)
    shown = await room.run(f"/resume {FLAWED.session_id}")
    assert [line for line in shown.splitlines() if line.startswith("!")] == FLAWS


async def test_without_an_id_the_last_other_conversation_is_resumed(asked: Room) -> None:
    conversation = asked.context.conversation
    first = conversation.session.session_id
    with pytest.raises(CommandNotPossible, match="there is no other past conversation"):
        await asked.run("/resume")
    assert conversation.session.session_id == first
    await asked.run("/new")
    await asked.say("How is espresso pressed?")
    second = conversation.session.session_id
    assert f"Continuing {first} (1 turn)." in await asked.run("/resume")
    assert f"Continuing {second} (1 turn)." in await asked.run("/resume")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("/forget nothing.md", "/memory lists the documents."),
        ("/forget nothing*", "/memory lists the documents; /in * asks all of them."),
        ("/in nothing*", "/memory lists the documents; /in * asks all of them."),
        ("/resume nope", "/sessions lists them."),
        ("/notebook nope", "/notebook lists them."),
        ("/role nope", "/role lists them."),
    ],
)
async def test_an_unknown_name_hints_at_a_command_of_the_chat(asked: Room, line: str, hint: str) -> None:
    assert (await asked.say(line)).splitlines()[-1] == hint


async def test_export_writes_markdown_or_json_and_overwrites_nothing(asked: Room, tmp_path: Path) -> None:
    await asked.run('/export "talk.md"')
    assert "How hot is green tea brewed?" in (tmp_path / "talk.md").read_text("utf-8")
    await asked.run("/export talk.json")
    assert json.loads((tmp_path / "talk.json").read_text("utf-8"))
    with pytest.raises(FileAlreadyExists):
        await asked.run("/export talk.md")
    with pytest.raises(NotWritable, match=r"as Markdown \(\.md, \.txt\) or JSON \(\.json\), not as \.pdf\.$"):
        await asked.run("/export talk.pdf")
    assert not (tmp_path / "talk.pdf").exists()


async def test_export_without_a_name_chooses_a_free_one(asked: Room, tmp_path: Path) -> None:
    session = asked.context.conversation.session.session_id
    for name in (f"ragchat-{session}.md", f"ragchat-{session}-2.md", f"ragchat-{session}-3.md"):
        assert await asked.run("/export") == f"Wrote {name}.\n"
        assert (tmp_path / name).read_text("utf-8").count("How hot is green tea brewed?") > 0


async def test_what_a_full_disk_did_not_save_is_exported_all_the_same(
    asked: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object, **__: object) -> None:
        raise SessionsUnavailable("sessions.db", "the disk is full")

    monkeypatch.setattr(SessionStore, "save_turn", full)
    await asked.run("/retry")
    await asked.run("/export retried.json")
    last = asked.context.conversation.session.turns[-1]
    assert last.turn_id in (tmp_path / "retried.json").read_text("utf-8")
    assert "This turn was not saved." in await asked.say("What is pressed at nine bar?")
    await asked.run("/export both.md")
    text = (tmp_path / "both.md").read_text("utf-8")
    assert text.index("How hot is green tea brewed?") < text.index("What is pressed at nine bar?")
    await asked.run("/new")
    await asked.say("What is pressed at nine bar?")
    await asked.run("/export new.md")
    assert (tmp_path / "new.md").read_text("utf-8").startswith("# What is pressed at nine bar?")


async def test_an_export_has_the_passages_of_every_turn_also_if_the_last_is_not_saved(
    asked: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asked.say("What is pressed at nine bar?")
    monkeypatch.setattr(SessionStore, "save_turn", AsyncMock(side_effect=SessionsUnavailable("s.db", "full")))
    await asked.say("How hot is green tea?")
    assert await asked.run("/export all.json") == "Wrote all.json.\n"
    turns = json.loads((tmp_path / "all.json").read_text("utf-8"))["turns"]
    assert [bool(turn["trace"]["candidates"]) for turn in turns] == [True, True, True]


async def test_an_export_says_which_passages_are_lost_with_the_saved_turns(
    asked: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asked.say("What is pressed at nine bar?")
    assert await asked.run("/export whole.json") == "Wrote whole.json.\n"
    sessions, session_id = asked.context.conversation.sessions, asked.context.conversation.session.session_id
    lost = "The passages of 1 earlier turn are not in this export."
    with monkeypatch.context() as patched:
        unreadable = AsyncMock(side_effect=SessionsUnavailable("s.db", "locked"))
        patched.setattr(SessionStore, "load", unreadable)
        said = await asked.run("/export unreadable.json")
        assert said.startswith(f"{lost} The sessions in s.db cannot be used: locked.")
    await sessions.remove(session_id)
    assert (await asked.run("/export removed.json")).startswith(f"{lost} There is no session {session_id}.")
    assert await asked.run("/export removed.md") == "Wrote removed.md.\n"
    await asked.say("How hot is green tea?")
    assert (await asked.run("/export again.json")).startswith(
        "The passages of 2 earlier turns are not in this export. They are no longer saved."
    )


async def test_retry_asks_again_in_place_of_the_last_answer(asked: Room) -> None:
    assert "75 degrees" in await asked.run("/retry")
    assert len(asked.context.conversation.session.turns) == 1


async def completed(room: Room, text: str) -> list[str]:
    completer = SlashCompleter(lambda: room.context)
    return [c.text async for c in completer.get_completions_async(Document(text), CompleteEvent())]


async def test_arguments_are_completed_with_existing_names(asked: Room) -> None:
    assert await completed(asked, "/forget TE") == ["tea.md"]
    assert await completed(asked, "/forget coff") == ["my coffee.md"]
    assert await completed(asked, "/forget [") == []
    assert await completed(asked, "/memory TE") == ["tea.md"]
    assert await completed(asked, "/resume ") == [asked.context.conversation.session.session_id]
    assert "offline" in await completed(asked, "/model off")
    assert await completed(asked, "/system e") == ["edit"]
    assert await completed(asked, "/help wh") == ["why"]


@pytest.mark.parametrize("name", ["quit", "exit", "q", "QUIT"])
async def test_quit_leaves(room: Room, name: str) -> None:
    await room.run(f"/{name}")
    assert room.context.leaving


@pytest.mark.parametrize(
    ("argument", "paths"),
    [
        ("a.md b.md", ["a.md", "b.md"]),
        ("my coffee.md", ["my coffee.md"]),
        ("'my coffee.md' x", ["my coffee.md", "x"]),
        ("Bob's notes.md", ["Bob's notes.md"]),
        ("a#1.md", ["a#1.md"]),
    ],
)
async def test_paths_are_taken_as_a_shell_takes_them(room: Room, argument: str, paths: list[str]) -> None:
    assert room is not None
    assert split_paths(argument) == paths


async def test_reasoning_is_shown_for_the_last_answer_or_from_now_on(room: Room) -> None:
    with pytest.raises(CommandNotPossible, match="no reasoning came"):
        await room.run("/reasoning")
    with pytest.raises(UnexpectedArgument, match=r"^/reasoning takes on, off or nothing"):
        await room.run("/reasoning maybe")
    with OpenAIServer([Reply("Tea is hot.", reasoning="What is asked?")]) as server:
        room.context.conversation.model = ModelSelection(
            replace(model_settings(), name="test-model", base_url=server.base_url), {}
        )
        assert "What is asked?" not in await room.say("How hot?")
        assert await room.run("/reasoning") == "What is asked?\n"
        assert "shown from now on" in await room.run("/reasoning on")
        assert "What is asked?" in await room.say("How hot?")
        assert "not shown" in await room.run("/reasoning off")
        assert "What is asked?" not in await room.say("How hot?")
        await room.context.conversation.model.aclose()


@pytest.mark.parametrize("line", ["/undo 2", "/new now", "/quit please"])
async def test_a_command_without_arguments_refuses_one(asked: Room, line: str) -> None:
    with pytest.raises(UnexpectedArgument, match=r"^/\w+ takes no argument\.$"):
        await asked.run(line)
    assert not asked.context.leaving
    assert (await asked.context.memory.stats()).documents == 2


async def test_a_role_follows_the_system_prompt_until_it_is_reset(room: Room) -> None:
    shown = await room.run("/role")
    assert "  reviewer" in shown
    with OpenAIServer([Reply("One."), Reply("Two.")]) as server:
        chosen = replace(model_settings(), name="test-model", base_url=server.base_url)
        room.context.conversation.model = ModelSelection(chosen, {})
        assert "The role is now teacher." in await room.run("/role teacher")
        assert "* teacher" in await room.run("/role")
        await room.say("How hot is green tea?")
        system = server.requests[-1]["messages"][0]["content"]
        assert system.startswith(room.context.conversation.system_prompt)
        assert "Answer as a teacher" in system
        assert "No role is in use." in await room.run("/role reset")
        await room.say("How hot is green tea?")
        assert server.requests[-1]["messages"][0]["content"] == room.context.conversation.system_prompt
        await room.context.conversation.model.aclose()
    with pytest.raises(UnknownRole, match="There is no role techer"):
        await room.run("/role techer")
