"""Judged turns as cases, asked again and compared. Covers `cases`, `conditions`, `runs` and `store`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ragchat.conversation import Conversation
from ragchat.errors import PlaceUnusable, ScriptInvalid, UnknownCase, UnknownTurn
from ragchat.evaluation.cases import Case, cases_of_script, confirmation
from ragchat.evaluation.conditions import conditions
from ragchat.evaluation.judging import Outcome, judge_cases
from ragchat.evaluation.runs import Run, compare, run_cases, sentence
from ragchat.evaluation.store import EvaluationStore, save_verdict
from ragchat.notebooks.definitions import Notebook, create, folder_of, load, remove, save
from ragchat.scripts.script import load_script
from ragconfig.prompt_files import ROLES
from tests.support.memory import memory_of
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.turns import no_servers, settings_in

DOCUMENTS = {
    "tea.md": "# Tea\n\nGreen tea is steeped at 75 degrees for two minutes.\n",
    "coffee.md": "# Coffee\n\nThe machine is descaled with citric acid.\n\nError E07 means a full grinder.\n",
}
TEA, E07, CUP = "How is green tea steeped?", "What does error E07 mean?", "Who won the cup in 1954?"


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[Conversation]:
    settings = settings_in(tmp_path)
    async with (
        memory_of(tmp_path, DOCUMENTS) as memory,
        Conversation(settings, memory, no_servers(settings), environ={}) as conversation,
    ):
        yield conversation


async def judged(chat: Conversation, question: str, verdict: str, place: str = "") -> Case:
    turn = await chat.ask(question)
    assert verdict in ("good", "bad")
    return await save_verdict(chat, turn.turn_id, "good" if verdict == "good" else "bad", place)


async def test_a_good_answer_is_asked_again_until_its_document_changes(chat: Conversation) -> None:
    case = await judged(chat, TEA, "good")
    assert confirmation(case) == "Saved: the answer is in /notes/tea.md:3. `ragchat eval` asks again."
    await judged(chat, CUP, "good")
    async with EvaluationStore(chat.sessions.path) as store:
        cases = await store.cases()
        assert [case.wanted for case in cases] == ["/notes/tea.md:3", "nowhere"]
        first = await run_cases(chat, cases, "", None)
        await store.save_run(first)
        assert [(one.right, one.screen, one.prompt) for one in first.outcomes] == [
            (True, True, True),
            (True, None, None),
        ]
        await chat.memory.inject("# Tea\n\nEmpty.\n", {"uri": "file:///notes/tea.md"})
        (last,) = await store.runs()
        second = await run_cases(chat, cases, "", last)
    assert [sentence(change) for change in second.worse] == [
        f"worse: {TEA}: no longer right; it does not show /notes/tea.md:3 (/notes/tea.md changed)"
    ]
    assert second.differs == ["1 document changed: /notes/tea.md"]
    assert second.public()["right"] == 1


async def test_the_right_place_of_a_bad_answer_may_be_lines_a_number_or_nowhere(chat: Conversation) -> None:
    lines = await judged(chat, E07, "bad", "coffee.md:5")
    assert (lines.wanted, lines.places[0].text) == (
        "/notes/coffee.md:5",
        "Error E07 means a full grinder.",
    )
    number = await judged(chat, E07, "bad", "1")
    whole = await judged(chat, E07, "bad", "tea.md")
    assert (number.places[0].uri, whole.places[0].text) == ("file:///notes/coffee.md", "")
    nowhere, unknown = await judged(chat, E07, "bad", "nowhere"), await judged(chat, E07, "bad")
    outcomes = await judge_cases(chat, [lines, number, whole, nowhere, unknown])
    assert [one.right for one in outcomes] == [True, True, False, False, False]
    assert outcomes[-1].failures == ["is the same bad answer"]
    for place in ("9", "coffee.md:50", "coffee.md:2"):
        with pytest.raises(PlaceUnusable):
            await judged(chat, E07, "bad", place)


async def test_an_earlier_answer_can_be_judged_by_its_passages(chat: Conversation, tmp_path: Path) -> None:
    with OpenAIServer([Reply("At 75 degrees [1]."), Reply("Hot.")]) as server:
        settings = settings_in(tmp_path, model__name="test-model", model__base_url=server.base_url)
        async with Conversation(settings, chat.memory, no_servers(settings), environ={}) as asking:
            case = await judged(asking, TEA, "good")
            await asking.ask(E07)
            later = await save_verdict(asking, case.case_id, "good", "")
    assert later.places == case.places
    assert "steeped at 75 degrees" in later.places[0].text


async def test_a_verdict_on_a_turn_replaces_the_one_before_and_can_be_removed(chat: Conversation) -> None:
    case = await judged(chat, TEA, "good")
    await save_verdict(chat, case.case_id, "bad", "nowhere")
    async with EvaluationStore(chat.sessions.path) as store:
        assert [(one.verdict, one.wanted) for one in await store.cases()] == [("bad", "nowhere")]
        await store.remove_case(case.case_id[:5])
        assert await store.cases() == []
        with pytest.raises(UnknownCase):
            await store.remove_case("")
    with pytest.raises(UnknownTurn):
        await save_verdict(chat, "zz", "good", "")


async def test_a_case_is_asked_in_the_documents_that_were_asked_and_after_what_it_refers_to(
    chat: Conversation,
) -> None:
    await chat.ask(TEA)
    await chat.scope.narrow("tea.md")
    case = await judged(chat, "and for how long?", "good", "1")
    assert (case.after, case.conditions and case.conditions.scope) == ([TEA], "tea.md")
    await chat.scope.narrow("*")
    (outcome,) = await judge_cases(chat, [case])
    assert (outcome.right, outcome.uris) == (True, ["file:///notes/tea.md"])
    assert len(await chat.sessions.list()) == 1  # what eval asks is not saved


async def test_a_case_is_asked_in_its_notebook_and_role_and_fails_alone_without_them(
    chat: Conversation,
) -> None:
    folder, roles = folder_of(chat.settings), chat.settings.home.config / ROLES
    roles.mkdir(parents=True)
    (roles / "cook.md").write_text("You cook.")
    create(folder, Notebook("teas", "tea.md", "Be brief."))
    await chat.use_notebook(load(folder, "teas"))
    chat.use_role("cook")
    inside = await judged(chat, TEA, "good")
    await chat.use_notebook(None)
    chat.use_role("")
    outside = await judged(chat, E07, "good")
    first = await run_cases(chat, [inside, outside], "", None)
    assert [one.right for one in first.outcomes] == [True, True]
    assert first.outcomes[0].system_prompt != first.outcomes[1].system_prompt
    save(folder, Notebook("teas", "tea.md", "Be long."))
    (differs,) = (await run_cases(chat, [inside, outside], "", first)).differs
    assert differs.startswith("system_prompt of teas and cook: ")
    remove(folder, "teas")
    last = await run_cases(chat, [inside, outside], "", None)
    assert [(one.right, one.failures) for one in last.outcomes] == [
        (None, ["There is no notebook teas."]),
        (True, []),
    ]
    assert (last.public()["failed"], last.public()["right"]) == (1, 1)
    assert next(last.summary()).endswith("; 0 declined; 1 could not be asked.")
    assert (await run_cases(chat, [], "", None)).public()["of"] == 0


async def test_the_conditions_hold_no_password(chat: Conversation, tmp_path: Path) -> None:
    chat.settings = settings_in(
        tmp_path,
        model__base_url="http://me:secret@127.0.0.1:9/v1",
        model__extra_body={"token": "secret"},
    )
    now = await conditions(chat, "offline")
    assert now.settings["model.base_url"] == "http://***@127.0.0.1:9/v1"
    assert "secret" not in str(now)


async def test_a_script_of_questions_is_a_set_of_cases(chat: Conversation, tmp_path: Path) -> None:
    script = tmp_path / "set.toml"
    script.write_text(
        f"""
        [[step]]
        ask = "{TEA}"
        expect = {{ contains = "75 degrees", cites = "tea.md" }}
        [[step]]
        ask = "and with how much sugar?"
        after = "{TEA}"
        expect = {{ contains = "an hour" }}
        [[step]]
        ask = "{CUP}"
        expect = {{ grounded = false }}
        [[step]]
        ask = "{TEA}"
        """,
        encoding="utf-8",
    )
    outcomes = await judge_cases(chat, cases_of_script(load_script(script), script))
    assert [(one.right, one.screen, one.prompt, one.declined) for one in outcomes] == [
        (True, True, True, False),
        (False, False, False, True),
        (True, None, None, True),
        (None, None, None, False),
    ]
    script.write_text('[[step]]\ninject = "a.md"\n', encoding="utf-8")
    with pytest.raises(ScriptInvalid, match="step 1 does not ask"):
        cases_of_script(load_script(script), script)


async def test_an_answer_of_a_model_that_lacks_most_facts_of_the_good_one_is_not_right(
    chat: Conversation, tmp_path: Path
) -> None:
    replies = [Reply("75 degrees for 120 seconds, says Ada Miller [1]."), Reply("It is steeped [1].")]
    with OpenAIServer(replies) as server:
        settings = settings_in(tmp_path, model__name="test-model", model__base_url=server.base_url)
        async with Conversation(settings, chat.memory, no_servers(settings), environ={}) as asking:
            case = await judged(asking, TEA, "good")
            (outcome,) = await judge_cases(asking, [case])
    assert (outcome.right, outcome.screen, outcome.prompt) == (False, True, True)
    assert outcome.failures == ["lacks 75 degrees, 120 seconds, Ada Miller"]


@pytest.mark.parametrize(
    ("answer", "failures"),
    [
        ("It is steeped at 75 degrees [1].", []),
        ("It is steeped at 75 degrees for 90 seconds, as Ada Miller says [1].", []),
        (
            "It is steeped at 20 degrees for 90 seconds, as Eve Smith says [1].",
            ["says what its sources do not: 20 degrees, Eve Smith"],
        ),
        ('It is "steeped in ice water" [1].', ["has a quotation that is not in its source"]),
    ],
)
async def test_an_answer_with_the_right_place_and_a_fact_of_its_own_is_not_right(
    chat: Conversation, tmp_path: Path, answer: str, failures: list[str]
) -> None:
    good = "At 75 degrees. It takes 90 seconds, not 120 degrees, says Ada Miller."
    case = replace(await judged(chat, TEA, "good", "1"), answer=good)
    with OpenAIServer([Reply(answer)]) as server:
        settings = settings_in(tmp_path, model__name="test-model", model__base_url=server.base_url)
        async with Conversation(settings, chat.memory, no_servers(settings), environ={}) as asking:
            (outcome,) = await judge_cases(asking, [case])
    assert (outcome.failures, outcome.right) == (failures, not failures)


async def test_a_case_that_could_not_be_asked_is_compared_with_the_run_before(chat: Conversation) -> None:
    now = await conditions(chat, "offline")

    def run(*outcomes: Outcome) -> Run:
        return Run("2026-11-29T10:00:00Z", "", now, [*outcomes])

    right, failed = Outcome("a", "A?", True), Outcome("a", "A?", failed=True)
    async with EvaluationStore(chat.sessions.path) as store:
        assert await store.last_run() is None
        for outcomes in ([right, Outcome("b", "B?", True)], [failed, Outcome("b", "B?", False)], [failed]):
            await store.save_run(run(*outcomes))
        last = await store.last_run()
    assert last is not None
    assert last.outcomes == [right]
    (change,) = compare(last.outcomes, [Outcome("a", "A?", False)])
    assert not change.better


def test_only_measures_that_are_known_both_times_are_compared() -> None:
    before = [Outcome("a", "A?", True, True, True), Outcome("b", "B?", None), Outcome("c", "C?", True, False)]
    now = [Outcome("a", "A?", True, True, False), Outcome("b", "B?", False), Outcome("c", "C?", True, True)]
    changes = [(one.case_id, one.measure, one.better) for one in compare(before, [*now, Outcome("d", "D?")])]
    assert changes == [("a", "prompt", False), ("c", "screen", True)]
