"""Prompts and roles in the shell, on a real memory and with a model that a test plays.

Covers `ragchat.servers.prompts`.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from ragchat.arguments.parser import make_parser
from ragchat.commands import prompt
from ragchat.commands.invocation import Invocation
from ragchat.console import Console
from ragchat.errors import (
    PromptArgumentRefused,
    PromptIncomplete,
    PromptNeedsModel,
    RagChatError,
    UnknownPrompt,
    UnknownPromptArgument,
)
from tests.client.ui.slash.test_prompts import TEA, model, sent
from tests.client.ui.slash.test_table import Room, open_room
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.program import program_in

OWN = '+++\ntitle = "T"\ndescription = "A commit message."\n+++\nWrite a commit message for the text.\n'


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGCHAT_HOME", str(tmp_path / "home"))


def run_of(*words: str, out: io.StringIO | None = None) -> Invocation:
    arguments = make_parser().parse_args(words)
    return Invocation(
        arguments, Console(json=arguments.json, stdout=out or io.StringIO(), stderr=io.StringIO())
    )


def asked(*words: str) -> Invocation:
    return run_of("ask", "--prompt", *words)


async def stored(room: Room, *texts: str) -> list[str]:
    """The ids of these texts in the memory of the room."""
    return [(await room.context.memory.inject(text, {})).document_id for text in texts]


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ([], {}),
        (["my tea.md", "short"], {"document": "my tea.md", "length": "short"}),
        (["length=one line", "tea.md"], {"document": "tea.md", "length": "one line"}),
        (["https://a.b/c?d=e"], {"document": "https://a.b/c?d=e"}),
        (["-", "length=a=b"], {"length": "a=b"}),
    ],
)
def test_words_are_values_in_order_or_by_name(words: list[str], values: dict[str, str]) -> None:
    assert prompt.values_of("p", words, ["document", "length"]) == values


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["lenght=short"], UnknownPromptArgument("lenght", ["length"], "p", ["document", "length"])),
        (
            ["length=1", "length=2"],
            PromptArgumentRefused("p", "length", "it has two values, 1 and 2"),
        ),
        (
            ["a", "b", "c"],
            PromptArgumentRefused("p", "c", "it has no further argument"),
        ),
    ],
)
def test_a_word_that_would_be_lost_is_refused(words: list[str], error: RagChatError) -> None:
    with pytest.raises(type(error)) as refused:
        prompt.values_of("p", words, ["document", "length"])
    assert str(refused.value) == str(error)


def test_stdin_is_read_only_where_the_words_name_no_document() -> None:
    assert not prompt.names_documents(asked("compare-documents", "a.md"))
    assert prompt.names_documents(asked("compare-documents", "a.md", "b.md"))
    assert not prompt.names_documents(asked("unknown", "a.md"))


async def test_the_given_texts_are_the_documents_that_the_words_do_not_name(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room, model(room, Reply("They differ.")) as server:
        conversation, ids = room.context.conversation, await stored(room, TEA, "Espresso, nine bar.")
        ask = await prompt.filled_in(asked("compare-documents", "aspects=heat"), conversation, ids)
        await ask(lambda _: None)
        assert sent(server).index("Green tea") < sent(server).index("Espresso")
        with pytest.raises(PromptArgumentRefused, match="2 texts given with -f or on stdin, and it takes 1"):
            await prompt.filled_in(asked("create-outline"), conversation, ids)
        with pytest.raises(PromptIncomplete, match="create-section needs topic=…") as incomplete:
            await prompt.filled_in(asked("create-section"), conversation, ids[:1])
        assert incomplete.value.hint == ""
        with pytest.raises(PromptIncomplete, match="create-section needs document=… and topic=…"):
            await prompt.filled_in(asked("create-section"), conversation, [])
        with pytest.raises(PromptArgumentRefused) as refused:
            await prompt.filled_in(asked("create-outline", "tea.md"), conversation, [])
        assert refused.value.hint == "`ragchat memory ls` lists the documents; -f names a file."


async def test_a_prompt_that_is_not_about_a_document_is_asked_about_the_given_text(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "config" / "prompts"
    folder.mkdir(parents=True)
    (folder / "commit message.md").write_text(OWN, "utf-8")
    async with open_room(tmp_path) as room, model(room, Reply("Add tea.")) as server:
        ids = await stored(room, TEA)
        ask = await prompt.filled_in(asked("commit_message"), room.context.conversation, ids)
        assert (await ask(lambda _: None)).question == "Write a commit message for the text."
        assert TEA.strip() in sent(server)


async def test_offline_a_prompt_says_that_it_needs_a_model(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        conversation, ids = room.context.conversation, await stored(room, TEA)
        for name in ("extract-facts", "git:log"):
            with pytest.raises(PromptNeedsModel, match=name):
                await prompt.filled_in(asked(name), conversation, ids)
        with pytest.raises(UnknownPrompt, match="There is no prompt summarize-documents"):
            await prompt.filled_in(asked("summarize-documents"), conversation, ids)
        turn = await (await prompt.filled_in(asked("create-outline"), conversation, ids))(lambda _: None)
        assert "Green tea is brewed at 75 degrees" in turn.answer.text


def test_prompts_and_roles_are_listed_and_shown_with_the_users_own(tmp_path: Path) -> None:
    for name, text in (("prompts/own.md", OWN), ("roles/mate.md", "Answer as a mate. Be brief.")):
        path = tmp_path / "home" / "config" / name
        path.parent.mkdir(parents=True)
        path.write_text(text, "utf-8")
    out = io.StringIO()
    prompt.ls(run_of("prompt", "ls", "--json", out=out))
    listed = json.loads(out.getvalue())
    assert {"create-outline", "own"} <= {one["name"] for one in listed["prompts"]}
    assert {"reviewer", "teacher", "mate"} == {one["name"] for one in listed["roles"]}
    prompt.ls(run_of("prompt", "ls", out=out))
    assert "Answer as a mate.\n" in out.getvalue()
    prompt.show(run_of("prompt", "show", "own", out=out))
    assert out.getvalue().endswith(OWN)
    with pytest.raises(UnknownPrompt, match="There is no prompt mat"):
        prompt.show(run_of("prompt", "show", "mat"))


@pytest.mark.full
def test_a_pipe_asks_a_prompt_in_a_role(tmp_path: Path) -> None:
    with OpenAIServer([Reply("“75 degrees” [1].")]) as server:
        ragchat = program_in(
            tmp_path, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k", RAGCHAT_MODEL_NAME="test-model"
        )
        done = ragchat("ask", "--json", "--prompt", "extract-facts", "--role", "reviewer", stdin=TEA)
        assert (done.code, done.err) == (0, "")
        assert [one["uri"] for one in done.json["citations"]] == ["stdin"]
        system, user = server.requests[-1]["messages"]
        assert "Answer as a reviewer of the documents." in system["content"]
        assert TEA.strip() in user["content"]
        assert "Form: table." in user["content"]
