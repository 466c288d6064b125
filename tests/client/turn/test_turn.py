"""One turn, offline and with a real scripted model server.

Covers `turn`, `retrieval`, `generation`, `rounds` and `events`.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace as with_changes

from ragchat.errors import MemoryUnavailable
from ragchat.grounding.citations import Checked, check
from ragchat.grounding.types import Citation
from ragchat.llm import tokens
from ragchat.llm.client import Model
from ragchat.llm.errors import EmptyAnswer, MissingKey, QuestionTooLong, RateLimited, ToolCallsUsedUp
from ragchat.llm.types import OFFLINE, ModelEndpoint, Usage
from ragchat.memory.types import ToolResult
from ragchat.offline.answer import EMPTY_MEMORY, NO_MODEL, NOTHING
from ragchat.turn.events import (
    Delta,
    Emit,
    Event,
    Notice,
    Reasoning,
    Rephrasing,
    Retrieved,
    Retrieving,
    Shown,
    ToolFinished,
    ToolStarted,
)
from ragchat.turn.limits import Budget, RetrievalLimits, TurnLimits
from ragchat.turn.past_turns import NOT_GROUNDED, NOT_SEARCHED
from ragchat.turn.prompt import Prompts
from ragchat.turn.rounds import (
    LIMIT_REACHED,
    NO_IMAGES_TAKEN,
    NO_MORE_CALLS,
    NO_TOOLS_TAKEN,
    ONLY_REASONING,
    REASONING_SHOWN,
    Answerer,
)
from ragchat.turn.turn import take_turn
from ragchat.turn.types import Turn
from ragchat.turn.why import UNCITED, marks
from ragchat.turn.why import answered as explained
from ragcommon.contract.search import Hit, QueryResult
from tests.client.llm.test_client import settings
from tests.support.openai_server import OpenAIServer, Reply, poured
from tests.support.turns import QUERY_TOOL, ListMemory, hit, make_toolbox, notices, only, turn

LIMITS = TurnLimits(RetrievalLimits(top_k=8, min_score=0.3, seconds=5.0), Budget(8000, 500, 2000), rounds=2)
PROMPTS = Prompts(
    "Be kind.", "Passages:", "Near.", "Missing: {words}.", "No passages.", "Reword.", "Complete."
)
SKY = hit("The sky is blue because of Rayleigh scattering.", chunk_id=1)
SEA = hit("The sea is blue because water absorbs red light.", chunk_id=2)
TEA = hit("Tea is hot.", chunk_id=3, score=0.01)


async def offline_turn(
    question: str, memory: ListMemory, history: Sequence[Turn] = (), limits: TurnLimits = LIMITS
) -> tuple[Turn, list[Event]]:
    events: list[Event] = []
    answered = await take_turn(
        question,
        session_id="s1",
        history=history,
        memory=memory,
        answerer=None,
        limits=limits,
        emit=events.append,
    )
    shown = [event.answer.text for event in only(events, Shown)]
    assert [answered.answer.text] == (shown or [event.text for event in only(events, Delta)])
    return answered, events


async def asked(memory: ListMemory, answerer: Answerer, emit: Emit) -> Turn:
    """The first turn of a session."""
    return await take_turn(
        "Why?", session_id="s1", history=[], memory=memory, answerer=answerer, limits=LIMITS, emit=emit
    )


async def model_turn(
    question: str,
    memory: ListMemory,
    *replies: Reply,
    history: Sequence[Turn] = (),
    limits: TurnLimits = LIMITS,
) -> tuple[Turn, list[Event], OpenAIServer]:
    events: list[Event] = []
    with OpenAIServer(replies) as server:
        model = Model(ModelEndpoint("test-model", server.base_url), settings())
        try:
            answered = await take_turn(
                question,
                session_id="s1",
                history=history,
                memory=memory,
                answerer=Answerer(model, PROMPTS, make_toolbox(memory, "Query", "get_document")),
                limits=limits,
                emit=events.append,
            )
        finally:
            await model.aclose()
    assert answered.answer.text == "".join(event.text for event in only(events, Delta))
    return answered, events, server


async def test_offline_a_turn_quotes_memory_and_traces_where_from() -> None:
    answered, events = await offline_turn("Why is the sky blue?", ListMemory([SKY, SEA, TEA]))
    assert [type(event) for event in events] == [Retrieving, Retrieved, Notice, Shown]
    assert notices(events) == [NO_MODEL]
    assert "Rayleigh scattering" in answered.answer.text
    assert [card.chunk_id for card in answered.answer.cards] == [1]
    assert answered.answer.grounded
    assert answered.answer.model == OFFLINE
    assert answered.answer.usage == Usage()
    assert answered.timings.keys() == {"retrieval", "first_token", "total"}
    assert answered.trace.query == "Why is the sky blue?"
    assert [candidate.used for candidate in answered.answer.candidates][::2] == [True, False]


@pytest.mark.parametrize(
    ("question", "corrections", "noted"),
    [
        ("Summarise Lecture 2", {"summarise": "summarize"}, []),
        ("Summarise Lectre 2", {"lectre": "lecture"}, ["Searched for: Summarise Lecture 2"]),
        ("How is the skye?", {"skye": "sky"}, ["Searched for: How is the sky?"]),
    ],
)
async def test_corrected_words_are_named_but_not_that_of_a_command(
    question: str, corrections: Mapping[str, str], noted: list[str]
) -> None:
    _, events = await offline_turn(question, ListMemory([SKY], corrections=corrections))
    assert [note for note in notices(events) if note.startswith("Searched")] == noted


async def test_a_model_gets_the_passages_and_its_citations_are_checked() -> None:
    reply = Reply('It is "blue because of Rayleigh scattering" [1].', prompt_tokens=500)
    answered, events, server = await model_turn("Why is the sky blue?", ListMemory([SKY]), reply)
    assert answered.answer.text == reply.text
    assert [(found.n, found.verified, found.chunk_id) for found in answered.answer.citations] == [
        (1, True, 1)
    ]
    assert (answered.answer.grounded, answered.answer.model) == (True, "test-model")
    assert answered.answer.usage.prompt_tokens == 500
    assert SKY.text in server.requests[0]["messages"][-1]["content"]
    assert answered.answer.messages[:-1] == server.requests[0]["messages"]
    assert answered.answer.messages[-1] == {"role": "assistant", "content": reply.text}
    assert notices(events) == []


async def test_the_answer_streams() -> None:
    _, events, _ = await model_turn("Why?", ListMemory([SKY]), Reply("One two three."))
    assert [event.text for event in only(events, Delta)] == ["One", " two", " three."]


async def test_a_false_quotation_is_not_verified_and_has_a_notice() -> None:
    answered, events, _ = await model_turn(
        "Why?", ListMemory([SKY]), Reply('"The sky is green because" [1].')
    )
    assert [found.verified for found in answered.answer.citations] == [False]
    assert notices(events) == ["A quotation attributed to [1] is not in it word for word."]


async def test_facts_that_the_cited_passage_does_not_contain_have_a_notice() -> None:
    reply = Reply("The sky is blue for nine hours, says Newton [1].")
    answered, events, _ = await model_turn("Why is the sky blue?", ListMemory([SKY]), reply)
    assert answered.public()["unsupported"] == [{"facts": ["nine hours", "Newton"], "passages": [1]}]
    assert notices(events) == ["nine hours, Newton: not in [1]."]
    assert not answered.answer.grounded
    assert [type(event) for event in events][-2:] == [Delta, Notice]  # after the answer has streamed


async def test_of_very_many_facts_without_support_only_the_first_are_named() -> None:
    reply = Reply("The sky weighs " + ", ".join(f"{n} kg" for n in range(401, 1413)) + " [1].")
    answered, events, _ = await model_turn("Why is the sky blue?", ListMemory([SKY]), reply)
    (notice,) = notices(events)
    assert notice.endswith("409 kg, 410 kg and 1,002 more: not in [1].")
    reason = f"no: the passages do not contain {notice.partition(':')[0]}"
    assert dict(explained(answered))["Grounded"] == reason


async def test_facts_of_a_sentence_without_a_citation_are_checked_against_all_passages() -> None:
    reply = Reply("The sky is blue because of Rayleigh scattering [1]. It weighs 400 kg.")
    answered, events, _ = await model_turn("Why is the sky blue?", ListMemory([SKY, SEA]), reply)
    assert answered.public()["unsupported"] == [{"facts": ["400 kg"], "passages": []}]
    assert notices(events) == ["400 kg: not in any passage."]
    assert not answered.answer.grounded


class Shop(ListMemory):
    """Its tool names a price."""

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:  # noqa: ARG002
        return ToolResult(True, "They cost 3,000 EUR.")


async def test_facts_from_the_conversation_and_from_tools_need_no_citation() -> None:
    memory = Shop([SKY], tools=[QUERY_TOOL])
    call = Reply(tool_calls=[("Query", {"query": "price"})])
    reply = Reply("The sky is blue because of Rayleigh scattering [1]. Your 400 kg are 3,000 EUR.")
    earlier = [turn("I have 400 kg.")]
    answered, _, _ = await model_turn("Why is the sky blue?", memory, call, reply, history=earlier)
    assert answered.answer.unsupported == []
    assert answered.answer.grounded


async def test_a_passage_that_scores_nothing_is_no_source_even_if_the_model_cites_it() -> None:
    unrelated = hit("Tea is hot.", chunk_id=3, score=0.0)
    question = "Why is the sky of Selb blue?"
    answered, events, _ = await model_turn(question, ListMemory([SKY, unrelated]), Reply("See [2]."))
    assert [candidate.n for candidate in answered.answer.candidates] == [1, 0]
    assert (answered.answer.sources, answered.answer.grounded) == ([], False)
    assert "The answer cites [2], but no such passage was given." in notices(events)


@pytest.mark.parametrize(("question", "noted"), [("Why is the sky blue?", [UNCITED]), ("Thank you!", [])])
async def test_an_answer_without_any_citation_has_a_notice(question: str, noted: list[str]) -> None:
    answered, events, _ = await model_turn(question, ListMemory([SKY]), Reply("Because of scattering."))
    assert not answered.answer.grounded
    assert notices(events) == noted


async def test_the_event_loop_goes_on_while_an_answer_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, went_on = asyncio.get_running_loop(), threading.Event()

    def check_meanwhile(answer: str, passages: Mapping[int, Hit]) -> Checked:
        loop.call_soon_threadsafe(went_on.set)
        assert went_on.wait(10)
        return check(answer, passages)

    monkeypatch.setattr("ragchat.turn.generation.check", check_meanwhile)
    answered, _, _ = await model_turn("why is the sky blue?", ListMemory([SKY]), Reply("Scattering [1]."))
    assert [cited.n for cited in answered.answer.citations] == [1]


async def test_the_numbers_of_terminal_escapes_are_no_facts() -> None:
    reply = Reply("Scattering is \x1b[31mblue\x1b[0m \x1b]0;pwned 7\x07\x9b32m [1].")
    answered, _, _ = await model_turn("Why is the sky blue?", ListMemory([SKY]), reply)
    assert answered.answer.unsupported == []


async def test_a_citation_of_no_passage_has_a_notice_and_is_traced() -> None:
    answered, events, _ = await model_turn("Why?", ListMemory([SKY]), Reply("Because [1][4]."))
    assert answered.answer.unknown_citations == [4]
    assert notices(events) == ["The answer cites [4], but no such passage was given."]


async def test_a_model_learns_that_the_passages_only_come_close_and_the_turn_says_so() -> None:
    reply = Reply("The passages name no price [2].")
    memory = ListMemory([TEA, SKY])
    answered, events, server = await model_turn("Why is the sky blue in Zagreb?", memory, reply)
    content = server.requests[0]["messages"][-1]["content"]
    assert content.startswith("Passages: Near. Missing: Zagreb.")
    assert not answered.answer.grounded
    assert [found.chunk_id for found in answered.answer.citations] == [3]
    assert [(found.n, found.chunk_id) for found in answered.answer.nearest] == [(1, 1)]
    assert answered.answer.missing == ["sky", "blue", "Zagreb"]  # of the cited passage
    assert notices(events) == ["Not mentioned in the cited passages: sky, blue, Zagreb."]


async def test_a_grounded_answer_says_which_words_of_the_question_its_passages_lack() -> None:
    memory = ListMemory([TEA, SKY])
    question = "Why is the sky blue because of Rayleigh scattering at noon?"
    answered, events, _ = await model_turn(question, memory, Reply("Rayleigh scattering [1]."))
    assert (answered.answer.grounded, answered.answer.missing) == (True, ["noon"])
    assert notices(events) == ["Not mentioned in the cited passages: noon."]


async def test_offline_an_answer_says_that_nothing_is_relevant() -> None:
    answered, _ = await offline_turn("Ferrets?", ListMemory([TEA]))
    assert (answered.answer.text, answered.answer.grounded, answered.answer.citations) == (NOTHING, False, [])


async def test_a_model_learns_that_nothing_is_relevant_and_the_answer_says_so() -> None:
    answered, _, server = await model_turn("Ferrets?", ListMemory([TEA]), Reply("I like them."))
    assert answered.answer.text == f"I like them.\n\n{NOT_GROUNDED}"
    assert not answered.answer.grounded
    content = server.requests[0]["messages"][-1]["content"]
    assert content == "No passages.\n\nFerrets?"
    assert "Tea" not in content


async def test_offline_small_talk_has_a_reply_and_memory_is_not_asked() -> None:
    memory = ListMemory([SKY])
    answered, events = await offline_turn("Hi, what can you do?", memory)
    assert "summarise NAME" in answered.answer.text
    assert (answered.answer.grounded, answered.answer.sources, memory.asked) == (False, [], [])
    assert [type(event) for event in events] == [Delta]


async def test_documents_about_the_program_answer_before_its_own_reply() -> None:
    about = hit("ragchat is a terminal chat that answers from documents.", chunk_id=1)
    answered, _ = await offline_turn("What is ragchat?", ListMemory([about]))
    assert (answered.answer.grounded, "terminal chat" in answered.answer.text) == (True, True)
    answered, events = await offline_turn("What is ragchat?", ListMemory([SKY]))
    assert "ragchat inject" in answered.answer.text
    assert (answered.trace.query, notices(events)) == ("", [])


async def test_a_model_answers_small_talk_itself() -> None:
    answered, _, _ = await model_turn("thanks", ListMemory([SKY]), Reply("My pleasure."))
    assert answered.answer.text == "My pleasure."


@pytest.mark.parametrize(
    "reply", ["Scattering.", "Scattering [4].", '"The sky is green because" [1].', "Hot [2]."]
)
async def test_an_answer_is_not_grounded_if_it_cites_no_passage_that_holds_what_is_asked(reply: str) -> None:
    tea = hit("Tea is hot.", chunk_id=3)
    answered, _, _ = await model_turn("Why is the sky blue?", ListMemory([SKY, tea]), Reply(reply))
    assert not answered.answer.grounded
    assert [found.chunk_id for found in answered.answer.nearest] == [1]
    assert NOT_GROUNDED not in answered.answer.text


async def test_words_of_earlier_questions_are_no_evidence() -> None:
    history = [turn("Why is the sky blue?")]
    answered, _, _ = await model_turn("and Saturn?", ListMemory([SKY]), Reply("Blue [1]."), history=history)
    assert (answered.answer.grounded, answered.answer.missing) == (False, ["Saturn"])


REWRITING = TurnLimits(LIMITS.retrieval, LIMITS.budget, rounds=2, rewrite_seconds=30.0)


class TwoPartMemory(ListMemory):
    """Finds the sea by the word water only."""

    async def query(self, text: str, top_k: int = 8, filter: dict[str, Any] | None = None) -> QueryResult:
        found = await super().query(text, top_k, filter)
        return msgspec.structs.replace(found, hits=[SEA] if "water" in text else found.hits)


async def test_where_passages_only_come_close_a_model_is_asked_for_other_wordings() -> None:
    memory = TwoPartMemory([TEA])
    answered, _, server = await model_turn(
        "Which hot ocean has warm currents?",
        memory,
        Reply(
            '1. blue water\n- "water absorbs"\nWhich hot ocean has warm currents?\n\nthree\nfour',
            prompt_tokens=40,
        ),
        Reply("Red light [1].", prompt_tokens=100),
        limits=REWRITING,
    )
    assert memory.asked == ["Which hot ocean has warm currents?", "blue water", "water absorbs", "three"]
    assert answered.answer.wordings == ["blue water", "water absorbs", "three"]
    first, second = server.requests
    assert first["messages"] == [
        {"role": "system", "content": "Reword."},
        {"role": "user", "content": "Which hot ocean has warm currents?"},
    ]
    assert "tools" not in first
    assert [(found.n, found.hit.chunk_id) for found in answered.answer.candidates] == [(1, 3), (2, 2)]
    assert SEA.text in second["messages"][-1]["content"]
    assert answered.answer.usage.prompt_tokens == 140
    assert answered.answer.text == "Red light [1]."


async def test_without_other_wordings_the_turn_goes_on_with_what_was_found() -> None:
    question = "Which hot ocean has warm currents?"
    answered, events, _ = await model_turn(
        question, ListMemory([TEA]), Reply(status=500), Reply("Hot [1]."), limits=REWRITING
    )
    assert answered.answer.text == "Hot [1]."
    assert notices(events)[0].startswith("test-model did not rephrase the question. ")
    assert answered.answer.wordings == []


async def test_a_key_that_is_refused_for_other_wordings_is_not_tried_again_for_the_answer() -> None:
    question, memory = "Which hot ocean has warm currents?", ListMemory([TEA])
    with pytest.raises(MissingKey):
        await model_turn(question, memory, Reply(status=401), Reply("Hot [1]."), limits=REWRITING)


@pytest.mark.parametrize(
    ("question", "found", "limits"),
    [
        ("Why is the sky blue?", [SKY], REWRITING),  # grounded
        ("Which hot ocean has warm currents?", [TEA], LIMITS),  # not wanted
    ],
)
async def test_no_other_wordings_are_asked_for_in_vain(
    question: str, found: list[Hit], limits: TurnLimits
) -> None:
    _, _, server = await model_turn(question, ListMemory(found), Reply("So."), limits=limits)
    assert len(server.requests) == 1


async def test_a_follow_up_is_made_a_question_of_its_own_before_the_search() -> None:
    memory = ListMemory([SEA])
    answered, events, server = await model_turn(
        "and why is it blue?",
        memory,
        Reply("Why is the sea blue?", prompt_tokens=40),
        Reply("It absorbs red light [1].", prompt_tokens=100),
        history=[turn("Where is the sea?", answer="Between Europe and Africa.")],
        limits=REWRITING,
    )
    assert memory.asked == ["Why is the sea blue?"]
    assert answered.trace.query == "Why is the sea blue?"
    assert [type(event) for event in events[:2]] == [Rephrasing, Retrieving]
    first, second = server.requests
    assert first["messages"] == [
        {"role": "system", "content": "Complete."},
        {
            "role": "user",
            "content": "Question: Where is the sea?\nAnswer: Between Europe and Africa.\n\n"
            "Follow-up: and why is it blue?",
        },
    ]
    assert second["messages"][-1]["content"].endswith("and why is it blue?")
    assert answered.answer.usage.prompt_tokens == 140
    assert answered.answer.grounded


async def test_small_talk_is_never_put_in_other_words() -> None:
    _, _, server = await model_turn(
        "thanks!", ListMemory([TEA]), Reply("Welcome."), history=[turn("Where is it?")], limits=REWRITING
    )
    assert len(server.requests) == 1


@pytest.mark.parametrize("reply", [Reply("See [1]."), Reply("Hm."), Reply(status=500)])
async def test_a_follow_up_that_the_model_does_not_complete_takes_over_words_of_the_question_before(
    reply: Reply,
) -> None:
    memory = ListMemory([SEA])
    await model_turn(
        "and why is it blue?",
        memory,
        reply,
        Reply("It absorbs red light [1]."),
        history=[turn("Where is the sea?", answer="Between Europe and Africa.")],
        limits=REWRITING,
    )
    assert memory.asked[0] == "and why is it blue? blue sea"


async def test_a_model_that_failed_to_complete_a_follow_up_is_not_asked_for_wordings() -> None:
    _, _, server = await model_turn(
        "and why is it hot?",
        ListMemory([TEA]),
        Reply(status=500),
        Reply("So."),
        history=[turn("Where is the ocean current?", answer="There.")],
        limits=REWRITING,
    )
    assert len(server.requests) == 2


async def test_an_answer_from_an_empty_memory_says_so() -> None:
    empty = ListMemory(empty=True)
    assert (await offline_turn("Ferrets?", empty))[0].answer.text == EMPTY_MEMORY
    _, events, server = await model_turn("Ferrets?", empty, Reply("Hm."), limits=REWRITING)
    assert notices(events) == [EMPTY_MEMORY]
    assert len(server.requests) == 1  # other wordings would find nothing


async def test_without_memory_the_model_answers_and_a_notice_says_so() -> None:
    down = ListMemory(error=MemoryUnavailable("it is gone"))
    answered, events, _ = await model_turn("Why?", down, Reply("Because."))
    assert answered.answer.text == f"Because.\n\n{NOT_SEARCHED}"
    assert notices(events) == [
        "Memory is not available: it is gone. This answer does without memory. `ragchat doctor` says more."
    ]


async def test_without_memory_and_without_a_model_there_is_no_answer() -> None:
    with pytest.raises(MemoryUnavailable):
        await offline_turn("Why?", ListMemory(error=MemoryUnavailable("it is gone")))


async def test_a_memory_that_hangs_has_its_deadline() -> None:
    limits = TurnLimits(RetrievalLimits(8, 0.3, seconds=0.05), LIMITS.budget, 2)
    with anyio.fail_after(60):
        _, events, _ = await model_turn("Why?", ListMemory(hang=True), Reply("So."), limits=limits)
    assert notices(events) == ["Memory did not answer Query within 0.05 s. This answer does without memory."]


async def test_that_no_model_answers_is_said_once_a_conversation() -> None:
    first, _ = await offline_turn("Why is the sky blue?", ListMemory([SKY]))
    _, events = await offline_turn("Why is the sea blue?", ListMemory([SEA]), [first])
    assert notices(events) == []


async def test_a_notice_of_memory_is_emitted_and_traced() -> None:
    answered, events = await offline_turn("Why is the sky blue?", ListMemory([SKY], notice="By words alone."))
    assert notices(events) == answered.trace.notices == ["By words alone.", NO_MODEL]


async def test_a_follow_up_is_searched_with_what_came_before() -> None:
    memory = ListMemory([SKY])
    await offline_turn("and why?", memory, [turn("What colour is the sky?")])
    assert memory.asked == ["and why? colour sky"]


async def test_of_a_request_for_what_notes_say_only_the_topic_is_searched_for() -> None:
    request, memory = "What did I write about the sky?", ListMemory([SKY])
    offline, _ = await offline_turn(request, memory)
    answered, _, server = await model_turn(request, memory, Reply("It is blue [1]."))
    assert memory.asked == ["the sky", "the sky"]
    assert (offline.question, offline.answer.grounded, offline.answer.missing) == (request, True, [])
    assert request in server.requests[0]["messages"][-1]["content"]
    assert answered.answer.grounded


LIDO = hit("The lido has 140 lockers.", chunk_id=4)
BINS = hit("Glass goes to the bottle banks in Market Square.", chunk_id=5)


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("And how many lockers does the lido have?", "And how many lockers does the lido have?"),
        ("and is there glass in the lido?", "and is there glass in the lido? glass lido bottle banks Notes"),
        ("and in the lido?", "and in the lido? lido bottle banks Notes"),
        ("And does it have lockers?", "And does it have lockers? lockers bottle banks Notes"),
    ],
)
async def test_a_whole_question_about_another_document_is_no_follow_up(question: str, query: str) -> None:
    before = turn("where are the bottle banks?", cited=[Citation.of(1, BINS, "")])
    answered, _ = await offline_turn(question, ListMemory([LIDO, BINS]), [before])
    assert answered.trace.query == query


async def test_tools_run_and_their_passages_can_be_cited() -> None:
    memory = ListMemory([SKY], tools=[QUERY_TOOL], answers=[SEA, SKY])
    answered, events, server = await model_turn(
        "Why is the sea blue?",
        memory,
        Reply("Let me look.", tool_calls=[("Query", {"query": "sea"}), ("Query", {"query": "water"})]),
        Reply('"water absorbs red light" [2].'),
    )
    assert memory.called == [("Query", {"query": "sea"}), ("Query", {"query": "water"})]
    assert [type(event) for event in events if isinstance(event, (ToolStarted, ToolFinished))] == [
        ToolStarted,
        ToolStarted,
        ToolFinished,
        ToolFinished,
    ]
    assert answered.answer.text == 'Let me look.\n\n"water absorbs red light" [2].'
    assert [(found.n, found.chunk_id, found.verified) for found in answered.answer.citations] == [
        (2, 2, True)
    ]
    roles = [message["role"] for message in server.requests[1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool"]
    assert server.requests[1]["messages"][3]["tool_call_id"] == "call_0"


class Painter(ListMemory):
    """Its tool returns an image."""

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult(True, f"[image/png for {name} {arguments}]", images=[IMAGE])


IMAGE = "data:image/png;base64,QUJD"


@pytest.mark.parametrize("takes", [True, False])
async def test_images_of_tools_go_to_a_model_that_takes_them(takes: bool) -> None:
    called = Reply(tool_calls=[("Query", {"query": "a"}), ("Query", {"query": "b"})])
    refusal = [] if takes else [Reply(status=400, message="image_url is not supported")]
    memory = Painter([], tools=[QUERY_TOOL])
    answered, events, server = await model_turn("Paint.", memory, called, *refusal, Reply("Painted."))
    first = server.requests[1]["messages"]
    assert [message["role"] for message in first[-3:]] == ["tool", "tool", "user"]
    assert [part["image_url"]["url"] for part in first[-1]["content"][1:]] == [IMAGE, IMAGE]
    assert IMAGE not in str(answered.answer.messages)
    assert (NO_IMAGES_TAKEN.format(model="test-model") in notices(events)) is not takes
    assert (IMAGE in str(server.requests[-1])) is takes


async def test_passages_that_only_a_tool_found_ground_the_answer() -> None:
    memory = ListMemory([TEA], tools=[QUERY_TOOL], answers=[SEA])
    answered, _, _ = await model_turn(
        "Why is the sea blue?",
        memory,
        Reply(tool_calls=[("Query", {"query": "sea"})]),
        Reply("Red light [1]."),
    )
    assert answered.answer.grounded
    assert NOT_GROUNDED not in answered.answer.text


async def test_what_memory_returns_other_than_passages_counts_as_text_that_is_not_the_users() -> None:
    reads = with_changes(QUERY_TOOL, name="get_document")
    memory = ListMemory([SKY], tools=[QUERY_TOOL, reads], answers=[SKY])
    calls = Reply(tool_calls=[("Query", {"query": "sky"}), ("get_document", {})])
    answered, _, _ = await model_turn("Why?", memory, calls, Reply("Blue [1]."))
    assert answered.answer.untrusted == ["the result of get_document"]


async def test_rounds_of_tools_are_bounded() -> None:
    memory = ListMemory([SKY], tools=[QUERY_TOOL], answers=[SKY])
    greedy = Reply("Let me look [1].", tool_calls=[("Query", {"query": "more"})], prompt_tokens=-1)
    _, events, server = await model_turn("Why?", memory, greedy)
    assert len(memory.called) == LIMITS.rounds
    assert notices(events) == [LIMIT_REACHED.format(setting="tools.rounds = 2")]
    assert ["tools" in request for request in server.requests] == [True, True, False]


class Library(ListMemory):
    """Its tools return a text of so many characters, each of which may be two tokens."""

    def __init__(self, size: int) -> None:
        super().__init__([SKY], tools=[QUERY_TOOL])
        self.size = size

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        await super().call(name, arguments)
        return ToolResult(True, "書" * self.size)


SMALL = replace(LIMITS, budget=Budget(1500, 500, 2000))


@pytest.mark.parametrize(
    ("limits", "size", "reason", "setting"),
    [
        (LIMITS, 10, "the limit of 2 rounds of calls is reached", "tools.rounds = 2"),
        (replace(LIMITS, tool_seconds=1e-9), 10, "their time is used up", "tools.turn_seconds = 1e-09"),
        (SMALL, 9000, "your context has no room for more results", "model.context_tokens = 1500"),
    ],
)
async def test_a_limit_that_ends_the_calls_is_told_to_the_model_and_to_the_user(
    limits: TurnLimits, size: int, reason: str, setting: str
) -> None:
    look = Reply("Let me look [1].", tool_calls=[("Query", {"query": "more"})], prompt_tokens=-1)
    _, events, server = await model_turn("Why?", Library(size), look, limits=limits)
    said = [
        str(request["messages"][-1]["content"]).endswith("what is missing.]") for request in server.requests
    ]
    assert said == [False] * (len(said) - 1) + [True]
    assert reason in server.requests[-1]["messages"][-1]["content"]
    assert "tools" not in server.requests[-1]
    assert notices(events) == [LIMIT_REACHED.format(setting=setting)]


async def test_results_in_any_alphabet_stay_within_the_context_and_say_what_is_cut() -> None:
    look = Reply(tool_calls=[("Query", {"query": "more"})] * 3, prompt_tokens=-1)
    _, _, server = await model_turn("Why?", Library(9000), look, Reply("Blue."))
    results = [one["content"] for one in server.requests[-1]["messages"] if one["role"] == "tool"]
    assert all("of 9,000 characters" in text for text in results)
    assert tokens.prompt_at_most(server.requests[-1]["messages"]) < LIMITS.budget.context


async def test_the_model_is_told_of_passages_that_had_no_room() -> None:
    long = [hit(f"{number} " + "Blue light. " * 150, chunk_id=number) for number in range(10, 16)]
    memory = ListMemory([SKY], tools=[QUERY_TOOL], answers=long)
    _, _, server = await model_turn("Why?", memory, Reply(tool_calls=[("Query", {})]), Reply("Blue."))
    assert "[There is no room for 3 passages found." in server.requests[-1]["messages"][-1]["content"]


async def test_a_passage_that_a_tool_finds_again_is_referred_to_by_its_number() -> None:
    memory = ListMemory([SKY], tools=[QUERY_TOOL], answers=[SKY])
    _, _, server = await model_turn("Why?", memory, Reply(tool_calls=[("Query", {})]), Reply("Blue [1]."))
    assert server.requests[-1]["messages"][-1]["content"] == "[Found as well, and given above: [1].]"


class Broken(ListMemory):
    """Its tools fail and say so little."""

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        await super().call(name, arguments)
        return ToolResult(False, str(arguments["text"]))


@pytest.mark.parametrize(("text", "told"), [("42", "42"), ("", "(no text)")])
async def test_the_model_is_told_that_a_call_failed(text: str, told: str) -> None:
    memory = Broken([SKY], tools=[QUERY_TOOL])
    asked = Reply(tool_calls=[("Query", {"text": text})])
    _, _, server = await model_turn("Why?", memory, asked, Reply("Blue."))
    assert server.requests[-1]["messages"][-1]["content"] == f"The call failed: {told}"


async def test_the_user_is_told_that_a_model_takes_no_tools() -> None:
    memory = ListMemory([SKY], tools=[QUERY_TOOL])
    refusal = Reply(status=400, message="tiny does not support tools")
    answered, events, _ = await model_turn("Why?", memory, refusal, Reply("Blue [1]."))
    assert answered.answer.text == "Blue [1]."
    assert NO_TOOLS_TAKEN.format(model="test-model") in notices(events)


AGAIN = Reply(tool_calls=[("Query", {"query": "more"})])


@pytest.mark.parametrize("last", [Reply(""), AGAIN])
async def test_a_model_that_only_calls_tools_is_an_error_that_names_the_limit(last: Reply) -> None:
    memory = ListMemory([SKY], tools=[QUERY_TOOL], answers=[SKY])
    with pytest.raises(ToolCallsUsedUp, match=r"tools\.rounds = 2"):
        await model_turn("Why?", memory, AGAIN, AGAIN, last)
    assert len(memory.called) == LIMITS.rounds


@pytest.mark.parametrize("rounds", [0, 2])
async def test_a_model_that_calls_tools_after_the_last_round_is_told_and_asked_for_words(rounds: int) -> None:
    memory = ListMemory([SKY], tools=[QUERY_TOOL], answers=[SKY])
    calls = [AGAIN] * (rounds + 1)
    limits = replace(LIMITS, rounds=rounds)
    answered, _, server = await model_turn("Why?", memory, *calls, Reply("Blue [1]."), limits=limits)
    assert answered.answer.text == "Blue [1]."
    assert len(memory.called) == rounds
    last = server.requests[-1]
    assert "tools" not in last
    assert last["messages"][-1] == {"role": "tool", "tool_call_id": "call_0", "content": NO_MORE_CALLS}


@pytest.mark.parametrize(
    "arguments",
    ['{"x": ' * 100_000 + "1" + "}" * 100_000, '{"x": ' + "[" * 500 + "]" * 500 + "}", '{"x": "\ud800"}'],
)
async def test_arguments_that_cannot_be_read_are_told_to_the_model(arguments: str) -> None:
    memory = ListMemory([SKY], tools=[QUERY_TOOL])
    hostile = Reply(tool_calls=[("Query", arguments)])
    answered, _, server = await model_turn("Why?", memory, hostile, Reply("Blue [1]."))
    assert answered.answer.text == "Blue [1]."
    assert memory.called == []
    *_, asked, told = server.requests[-1]["messages"]
    assert asked["tool_calls"][0]["function"]["arguments"] == "{}"
    assert told["content"].startswith("The arguments are not a JSON object: ")


async def test_usage_is_summed_over_the_rounds() -> None:
    memory = ListMemory([SKY], tools=[QUERY_TOOL], answers=[SKY])
    answered, _, _ = await model_turn(
        "Why?",
        memory,
        Reply(tool_calls=[("Query", {"query": "x"})], prompt_tokens=100),
        Reply("So.", prompt_tokens=200),
    )
    assert answered.answer.usage.prompt_tokens == 300


async def test_usage_that_was_not_reported_for_one_round_is_null_and_estimated() -> None:
    memory = ListMemory([SKY], tools=[QUERY_TOOL], answers=[SKY])
    answered, _, _ = await model_turn(
        "Why?",
        memory,
        Reply(tool_calls=[("Query", {"query": "x"})], prompt_tokens=100),
        Reply("So it is. " * 20, prompt_tokens=-1),
    )
    usage = answered.public()["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["cached_tokens"]) == (None, None, None)
    assert usage["estimated_prompt_tokens"] > 50
    assert 40 < usage["estimated_completion_tokens"] < 120


async def test_a_server_that_cut_the_prompt_is_noticed() -> None:
    long = hit("The sky is blue because of Rayleigh scattering. " * 100)
    _, events, _ = await model_turn("Why?", ListMemory([long]), Reply("So [1].", prompt_tokens=200))
    assert "counted 200" in notices(events)[0]


@pytest.mark.parametrize("counted", [-1, 0, 1100])
async def test_no_count_and_a_plausible_one_raise_no_alarm(counted: int) -> None:
    long = hit("The sky is blue because of Rayleigh scattering. " * 100)
    _, events, _ = await model_turn("Why?", ListMemory([long]), Reply("So [1].", prompt_tokens=counted))
    assert notices(events) == []


async def test_dropped_turns_have_one_notice() -> None:
    history = [turn(f"Q{n}?", "word " * 400) for n in range(20)]
    limits = TurnLimits(LIMITS.retrieval, Budget(3000, 500, 500), 2)
    answered, events, _ = await model_turn(
        "Why?", ListMemory([SKY]), Reply("So."), history=history, limits=limits
    )
    assert answered.answer.dropped_turns > 0
    assert answered.trace.history_turns + answered.answer.dropped_turns == 20
    assert re.search(
        r"^The \d+ oldest turns of this session no longer fit and were left out: after passages, tools and "
        r"the answer, [\d,]+ of the context's 3,000 tokens are left for the history\.$",
        notices(events)[0],
    )
    after = [*history[1:], answered]
    answered, events, _ = await model_turn(
        "Why?", ListMemory([SKY]), Reply("So [1]."), history=after, limits=limits
    )
    assert notices(events) == []


async def test_an_empty_answer_is_no_answer() -> None:
    with pytest.raises(EmptyAnswer):
        await model_turn("Why?", ListMemory([SKY]), Reply(""))


async def test_reasoning_alone_is_no_answer_and_the_hint_says_so() -> None:
    with pytest.raises(EmptyAnswer) as raised:
        await model_turn("Why?", ListMemory([SKY]), Reply("<think>Hm", finish="length"))
    assert raised.value.hint == ONLY_REASONING


async def test_reasoning_that_begins_in_the_prompt_is_not_part_of_the_answer() -> None:
    thought = Reply("The sky?\n</think>\n\nIt is blue [1].")
    memory, events = ListMemory([SKY]), list[Event]()
    with OpenAIServer([thought]) as server:
        model = Model(ModelEndpoint("test-model", server.base_url), settings())
        answerer = Answerer(model, PROMPTS, make_toolbox(memory))
        answered = await asked(memory, answerer, events.append)
        await model.aclose()
    assert answered.answer.text == "It is blue [1]."
    assert only(events, Reasoning) == [Reasoning("The sky?\n")]
    assert REASONING_SHOWN in notices(events)


async def test_an_answer_that_was_cut_off_has_a_notice() -> None:
    _, events, _ = await model_turn("Why?", ListMemory([SKY]), Reply("Because of", finish="length"))
    assert "cut off" in notices(events)[0]


async def test_an_error_of_the_model_ends_the_turn() -> None:
    with pytest.raises(RateLimited):
        await model_turn("Why?", ListMemory([SKY]), Reply(status=429))


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (
            Reply(status=429, retry_after=60),
            "accepts no more requests for now: Rate limit reached. Trying again in 60 s.",
        ),
        (
            Reply(status=503, message="Loading model"),
            "is still loading its model. Waiting for it, for at most 10 s.",
        ),
    ],
)
async def test_a_turn_says_how_long_it_waits_for_a_busy_server_and_can_be_stopped_meanwhile(
    reply: Reply, said: str
) -> None:
    told: list[str] = []

    def stop_at_notice(event: Event) -> None:
        if isinstance(event, Notice):
            told.append(event.text)
            scope.cancel()

    memory = ListMemory([SKY])
    with OpenAIServer([reply]) as server, anyio.fail_after(30):
        model = Model(ModelEndpoint("test-model", server.base_url), settings(retries=1))
        with anyio.CancelScope() as scope:
            await asked(memory, Answerer(model, PROMPTS, make_toolbox(memory, "Query")), stop_at_notice)
        await model.aclose()
    assert scope.cancelled_caught
    assert told == [f"{server.base_url} {said}"]


async def test_an_answer_that_the_user_stops_is_what_was_written_and_says_so() -> None:
    memory, events = ListMemory([SKY]), list[Event]()

    def stop_at_text(event: Event) -> None:
        events.append(event)
        if isinstance(event, Delta):
            assert answerer.stopping.stop()
            assert answerer.stopping.stop()  # A second Ctrl-C throws nothing away.

    held = Reply("The sky is blue [1]. It is wide.", hold_after=5)
    with OpenAIServer([held]) as server, anyio.fail_after(30):
        model = Model(ModelEndpoint("test-model", server.base_url), settings(retries=1))
        answerer = Answerer(model, PROMPTS, make_toolbox(memory, "Query"))
        assert not answerer.stopping.stop()
        turn = await asked(memory, answerer, stop_at_text)
        await model.aclose()
    assert turn.answer.text == "".join(event.text for event in events if isinstance(event, Delta))
    assert turn.answer.messages[-1] == {"role": "assistant", "content": turn.answer.text}
    assert notices(events) == ["The answer was stopped."]  # and not that it cites nothing
    assert "! The answer was stopped." in marks(Turn.of_record(msgspec.json.encode(turn.record())))


async def test_what_came_before_a_limit_is_the_answer_in_a_later_round_too() -> None:
    first = Reply("Let me see.", tool_calls=[("Query", {"query": "sky"})])
    endless = Reply(pours=(poured(reasoning="hm " * 1000),), content_type="text/event-stream")
    answered, events, _ = await model_turn("Why?", ListMemory([SKY], tools=[QUERY_TOOL]), first, endless)
    assert answered.answer.text == "Let me see."
    assert "The answer was cut off at the limit model.answer_characters = 1000000." in notices(events)


async def test_a_question_that_cannot_fit_is_refused() -> None:
    limits = TurnLimits(LIMITS.retrieval, Budget(200, 50, 50), 2)
    with pytest.raises(QuestionTooLong):
        await model_turn("word " * 1000, ListMemory([SKY]), Reply("So."), limits=limits)
