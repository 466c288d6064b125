"""A turn on the screen: the answer, its sources (`sources`), its trace (`why`, `ragchat.turn.why`).

Covers `screen` and `style`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from msgspec import structs

from ragchat.answer import Answer, Candidate, Card
from ragchat.grounding.types import Citation
from ragchat.llm.errors import ModelUnreachable
from ragchat.llm.types import OFFLINE, Usage
from ragchat.turn.events import (
    Delta,
    Emit,
    Event,
    Notice,
    Reasoning,
    Retrieved,
    Retrieving,
    Shown,
    ToolFinished,
    ToolStarted,
)
from ragchat.turn.types import Trace, Turn
from ragchat.ui.render.answer import MAX_SOURCES, AnswerView
from ragchat.ui.render.screen import Screen
from ragchat.ui.render.why import why
from ragcommon.contract.search import Hit
from tests.support.screens import piped_screen, terminal
from tests.support.turns import hit, turn


@pytest.fixture(autouse=True)
def xterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def cited(hit: Hit, n: int, quote: str = "", *, verified: bool = True) -> Citation:
    return Citation(
        n,
        hit.chunk_id,
        hit.document_id,
        hit.uri,
        hit.title,
        hit.heading,
        hit.start_line,
        hit.end_line,
        quote,
        verified,
    )


TEA = hit("Green tea is brewed at 75 degrees.", chunk_id=1, heading="Tea > Green", score=0.91)
COFFEE = hit("Espresso takes 25 seconds.", chunk_id=2, score=0.55)
CATS = hit("Cats sleep.", chunk_id=3, score=0.12)

TURN = Turn(
    turn_id="t1",
    session_id="s1",
    question="How hot?",
    answer=Answer(
        "At 75 degrees [1].",
        [cited(TEA, 1, "75 degrees"), cited(TEA, 1, "80 degrees", verified=False)],
        [
            Candidate(TEA, True, "relevant", 1),
            Candidate(COFFEE, False, "left out: the passage budget was full"),
            Candidate(CATS, False, "below min_score"),
        ],
        grounded=True,
        model="gpt-x",
        usage=Usage(1204, 21),
        passages_tokens=310,
        dropped_turns=1,
        prompt_tokens=1190,
        unknown_citations=[7],
        wordings=["green tea temperature", "brewing heat"],
    ),
    timings={"retrieval": 0.012, "first_token": 0.5, "total": 2.1},
    created_at="2026-01-01T00:00:00.000Z",
    trace=Trace(
        query="how hot is green tea",
        history_turns=3,
        notices=[
            "Memory is searched by words alone.",
            "The answer cites [7], but no such passage was given.",
        ],
    ),
)


def taking(turn: Turn, *events: Event) -> Callable[[Emit], Awaitable[Turn]]:
    """Takes a turn with these events."""

    async def take(emit: Emit) -> Turn:
        for event in events:
            emit(event)
        return turn

    return take


async def on_terminal(take_turn: Callable[[Emit], Awaitable[Turn]], *, in_chat: bool = False) -> str:
    out, file = terminal(80)
    err, err_file = terminal(80)
    await AnswerView(Screen(out, err, animated=True), in_chat=in_chat).show(take_turn)
    return file.shown + "\n" + err_file.shown


EXAMPLE = taking(
    TURN,
    Retrieving("how hot"),
    Retrieved([]),
    Notice("Words alone."),
    Delta("At 75 degrees"),
    Delta(" [1]."),
)


async def test_an_answer_comes_with_its_sources_scores_tokens_and_time() -> None:
    shown = await on_terminal(EXAMPLE)
    assert "At 75 degrees [1]." in shown
    assert "[1] /notes/1.md:1  Tea > Green  0.91  (a quotation was not found there)" in shown
    assert shown.count("/notes/1.md") == 1
    assert "gpt-x · 1,204 + 21 tokens · 2.1 s" in shown
    assert "Words alone." in shown


async def test_tokens_that_the_server_did_not_count_are_an_estimate() -> None:
    estimated = structs.replace(
        TURN, answer=structs.replace(TURN.answer, usage=Usage(None, None, None, 1100, 20))
    )
    assert "gpt-x · about 1,100 + 20 tokens · 2.1 s" in await on_terminal(taking(estimated, Delta("So.")))
    out, file = terminal(100)
    out.print(*why(estimated), sep="\n")
    assert "Tokens: prompt about 1,100, answer about 20 (the server reported none)" in file.shown


async def test_a_source_below_the_working_folder_is_a_link_to_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = hit("x", chunk_id=9)
    uri = (tmp_path / "tea.md").as_uri()
    citation = Citation(1, 9, "d", uri, "Tea", "", 2, 4, "", True)
    done = turn("q", cited=[citation])
    out, file = terminal()
    err, _ = terminal()
    await AnswerView(Screen(out, err, animated=True)).show(taking(done, Retrieved([])))
    assert "[1] tea.md:2–4" in file.shown
    assert uri in file.getvalue()
    assert here.uri not in file.getvalue()


@pytest.mark.parametrize("in_chat", [True, False])
async def test_of_very_many_sources_the_chat_shows_only_the_number_and_how_to_see_them(in_chat: bool) -> None:
    cited = [
        Citation(n, n, "d", "file:///a/crane.md", "Crane", "", n, n, "", True)
        for n in range(1, MAX_SOURCES + 2)
    ]
    shown = await on_terminal(taking(turn("q", cited=cited), Retrieved([])), in_chat=in_chat)
    assert (f"/sources lists {MAX_SOURCES + 1} sources." in shown) is in_chat
    assert ("crane.md" in shown) is not in_chat


@pytest.mark.parametrize(
    ("in_chat", "lines", "said"),
    [(True, 30, " · /more"), (True, 2, ""), (False, 30, " · `| cat` shows all"), (False, 2, "")],
)
@pytest.mark.parametrize("numbers", [(1, 2, 3), (1,)], ids=["three", "one that is cut"])
async def test_the_last_line_says_how_to_see_the_cards_that_do_not_fit(
    in_chat: bool, lines: int, said: str, numbers: tuple[int, ...]
) -> None:
    text = "\n".join(f"Line {number}." for number in range(lines))
    answer = Answer(text, cards=[Card(n, "a.md", "", text, (0, 7), 1.0, n) for n in numbers])
    done = structs.replace(TURN, answer=answer)
    shown = await on_terminal(taking(done, Retrieving("how hot"), Shown(answer)), in_chat=in_chat)
    assert shown.endswith(f"offline · 2.1 s{said}")


async def test_the_link_of_a_pdf_names_its_page() -> None:
    page = Citation(1, 9, "d", "file:///a/crane.pdf", "Crane", "", 2, 4, "", True, places=[(1, "p. 7")])
    out, file = terminal()
    err, _ = terminal()
    await AnswerView(Screen(out, err, animated=True)).show(taking(turn("q", cited=[page]), Retrieved([])))
    assert "file:///a/crane.pdf#page=7\x1b" in file.getvalue()


async def test_a_place_that_names_the_heading_is_shown_without_it_again() -> None:
    cost = Citation(
        *(1, 9, "d", "note:costs", "Costs", "Costs > Travel", 3, 3, "", True),
        places=[(3, "Costs > Travel ¶ 2")],
    )
    shown = await on_terminal(taking(turn("q", cited=[cost]), Retrieved([])))
    assert "[1] note:costs Costs > Travel ¶ 2\n" in shown


async def test_on_a_pipe_the_answer_is_plain_and_only_the_answer_is_on_stdout() -> None:
    screen, out, err = piped_screen()
    await AnswerView(screen).show(EXAMPLE)
    assert out.getvalue() == (
        "At 75 degrees [1].\n\n[1] /notes/1.md:1  Tea > Green  0.91  (a quotation was not found there)\n"
    )
    assert err.getvalue() == "Words alone.\n"


REASONING = (Retrieved([]), Reasoning("Hot?\nMaybe "), Reasoning("75."), Delta("At 75 degrees."))


@pytest.mark.parametrize("shown", [True, False])
async def test_reasoning_is_shown_before_the_answer_if_the_user_wants_it(shown: bool) -> None:
    screen, out, err = piped_screen()
    view = AnswerView(screen, shows_reasoning=shown)
    await view.show(taking(turn("q"), *REASONING))
    assert view.reasoning == "Hot?\nMaybe 75."
    assert out.getvalue() == "At 75 degrees.\n"
    assert err.getvalue() == ("Hot?\nMaybe 75.\n" if shown else "")


async def test_reasoning_between_parts_of_an_answer_stays_between_them() -> None:
    out, file = terminal()
    view = AnswerView(Screen(out, out, animated=True), shows_reasoning=True)

    async def take(emit: Emit) -> Turn:
        emit(Delta("Green tea"))
        view._stream.draw()
        emit(Reasoning("Hot?\n"))
        emit(Delta("At 75 degrees"))
        view._stream.draw()
        return turn("q")

    await view.show(take)
    assert file.shown.splitlines()[:3] == ["Green tea", "Hot?", ""]
    assert file.shown.count("Green tea") == 1


async def test_the_spinner_shows_seconds_and_continues_after_a_notice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ragchat.ui.render.answer.SPINNER_SECONDS", 0.0)
    out, _ = terminal(80)
    err, file = terminal(80)
    now = 0.0
    monkeypatch.setattr("ragchat.ui.render.stream.time", SimpleNamespace(monotonic=lambda: now))

    async def wait(emit: Emit) -> Turn:
        nonlocal now
        emit(Retrieved([]))
        await file.until("Thinking")
        now += 12
        await file.until("Thinking 12 s")
        emit(Notice("Trying again in 60 s."))
        now += 1
        await file.until("Thinking 13 s")
        return TURN

    with anyio.fail_after(60):
        await AnswerView(Screen(out, err, animated=True)).show(wait)
    assert "Trying again in 60 s." in file.shown


async def test_what_is_waited_for_is_one_line_where_lines_cannot_be_redrawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("ragchat.ui.render.answer.STALL_SECONDS", 0.0)
    out, _ = terminal(80)
    err, file = terminal(80)

    async def wait(emit: Emit) -> Turn:
        emit(Retrieved([]))
        await file.until("Thinking")
        emit(Delta("At 75 degrees."))
        return TURN

    with anyio.fail_after(60):
        await AnswerView(Screen(out, err, animated=False)).show(wait)
    assert file.getvalue().startswith("Thinking\n")
    assert file.getvalue().count("Thinking") == 1


async def test_the_output_before_a_failure_stays_on_the_screen() -> None:
    async def broken(emit: Emit) -> Turn:
        emit(Delta("Half an ans"))
        raise ModelUnreachable("http://localhost:9/v1", "connection refused")

    out, file = terminal()
    err, _ = terminal()
    with pytest.raises(ModelUnreachable):
        await AnswerView(Screen(out, err, animated=True)).show(broken)
    assert file.shown == "Half an ans"


async def test_a_tool_call_is_shown_on_one_line() -> None:
    shown = await on_terminal(
        taking(TURN, ToolStarted("Query", {}), ToolFinished("Query", False, "it\nfailed"), Delta("So."))
    )
    assert "Query: it failed" in shown


async def test_names_of_documents_cannot_drive_the_terminal() -> None:
    evil = Citation(1, 1, "d", "note:\x1b[2J", "\x1b]0;x\x07", "\x1b[31m", 1, 1, "", True)
    out, file = terminal()
    err, _ = terminal()
    await AnswerView(Screen(out, err, animated=False)).show(taking(turn("q", cited=[evil])))
    assert "\x1b[2J" not in file.getvalue()
    assert "\x1b[31m" not in file.getvalue()
    assert "note:␛[2J:1" in file.shown


def test_why_tells_the_whole_story_of_an_answer() -> None:
    out, file = terminal(100)
    out.print(*why(TURN), sep="\n")
    shown = " ".join(file.shown.split())
    for piece in (
        "Question: How hot?",
        "Searched for: how hot is green tea",
        "Also searched for: green tea temperature | brewing heat",
        "[1] 0.91 /notes/1.md:1 Tea > Green yes: relevant",
        "0.55 /notes/2.md:1 no: left out: the passage budget was full",
        "0.12 /notes/3.md:1 no: below min_score",
        "Passages: 1 of 3 used, about 310 tokens",
        "History: 3 earlier turns; 1 left out, the budget was full",
        "Model: gpt-x",
        "Tokens: prompt 1,204 (our estimate 1,190), answer 21",
        "Times: retrieval 12 ms, first token 500 ms, total 2.1 s",
        "Quotation: [1] does not contain “80 degrees”",
        "Notice: Memory is searched by words alone.",
    ):
        assert piece in shown
    assert shown.count("[7]") == 1


def test_why_is_read_line_by_line_on_a_narrow_screen() -> None:
    out, file = terminal(40)
    out.print(*why(TURN, is_narrow=True), sep="\n")
    lines = [line.strip() for line in file.shown.splitlines()]
    at = lines.index("[1]   0.91  /notes/1.md:1  Tea > Green")
    assert lines[at + 1 : at + 4] == ["yes: relevant", "0.55  /notes/2.md:1", "no: left out: the passage"]


def test_why_only_counts_the_passages_that_are_off_topic() -> None:
    out, file = terminal(100)
    *others, last = TURN.answer.candidates
    off_topic = structs.replace(last, hit=structs.replace(last.hit, score=0.001))
    answer = structs.replace(TURN.answer, candidates=[*others, off_topic, off_topic])
    out.print(*why(structs.replace(TURN, answer=answer)), sep="\n")
    assert "/notes/2.md" in file.shown
    assert "/notes/3.md" not in file.shown
    assert "and 2 more with the score 0.00" in file.shown


def test_why_shows_the_scores_that_reordered_the_passages() -> None:
    out, file = terminal(100)
    first, *others = TURN.answer.candidates
    reranked = structs.replace(first, hit=structs.replace(first.hit, rerank_score=0.87))
    answer = structs.replace(TURN.answer, candidates=[reranked, *others])
    out.print(*why(structs.replace(TURN, answer=answer)), sep="\n")
    shown = " ".join(file.shown.split())
    assert "score reranked passage" in shown
    assert "[1] 0.91 0.87 /notes/1.md:1" in shown


def test_why_names_wrong_quotations_as_the_reason_for_an_answer_that_is_not_grounded() -> None:
    out, file = terminal(100)
    answer = structs.replace(TURN.answer, grounded=False, citations=TURN.answer.citations[1:])
    out.print(*why(structs.replace(TURN, answer=answer)), sep="\n")
    assert "Grounded: no: the cited passages do not contain the quotations" in file.shown


def test_why_speaks_of_tokens_only_with_a_model() -> None:
    out, file = terminal(100)
    offline = structs.replace(TURN.answer, model=OFFLINE)
    out.print(*why(structs.replace(TURN, answer=offline)), sep="\n")
    assert "Times: retrieval 12 ms, total 2.1 s" in file.shown
    assert "Tokens" not in file.shown


def test_why_fits_a_narrow_terminal() -> None:
    out, file = terminal(32, rows=60)
    out.print(*why(TURN), sep="\n")
    assert "relevant" in "".join(file.shown.split())
    assert all(len(line) <= 32 for line in file.shown.splitlines())


async def test_events_during_a_question_to_the_user_are_drawn_afterwards() -> None:
    screen, out, err = piped_screen()
    view = AnswerView(screen)

    async def ask(emit: Emit) -> Turn:
        emit(Delta("Before. "))
        with view.held():
            emit(Delta("After."))
            emit(Notice("Something happened."))
            assert "After" not in out.getvalue()
            assert err.getvalue() == ""
        return TURN

    await view.show(ask)
    assert out.getvalue().startswith("Before.")
    assert "After." in out.getvalue()
    assert "Something happened." in err.getvalue()


async def test_the_progress_of_a_call_replaces_the_label_of_the_spinner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ragchat.ui.render.answer.SPINNER_SECONDS", 0.0)
    out, _ = terminal(80)
    err, file = terminal(80)
    view = AnswerView(Screen(out, err, animated=True))

    async def call(emit: Emit) -> Turn:
        view.show_progress("too early")
        emit(ToolStarted("mine__Wait", {}))
        await file.until("Calling mine__Wait")
        view.show_progress("Calling mine Wait: 1 of 2")
        await file.until("Calling mine Wait: 1 of 2")
        with view.held():
            view.show_progress("not now")
        await file.until("Calling mine Wait: 1 of 2")
        return TURN

    with anyio.fail_after(60):
        await view.show(call)
    assert "too early" not in file.shown
    assert "not now" not in file.shown
