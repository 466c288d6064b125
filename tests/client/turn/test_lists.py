"""Questions for several things, asked of a real memory: the list that answers is shown whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragchat.answer import Answer
from ragchat.errors import MemoryUnavailable
from ragchat.memory.client import MemoryClient
from ragchat.offline.cards import ELLIPSIS
from ragchat.offline.windows import SIZES
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.lists import MAX_INTRO, SIZE
from ragchat.turn.offline import answer_offline
from ragchat.turn.retrieval import retrieve
from tests.support.memory import memory_of

LIMITS = RetrievalLimits(top_k=8, min_score=0.3, seconds=30.0)
DUTIES = [f"wind the clock in tower {number}, whatever the weather is that day" for number in range(1, 19)]
KEEPER = "The duties of the keeper are:"
NIGHT = "The keeper sleeps in the lodge. In winter the keeper is paid twice.\n"


async def ask(question: str, documents: dict[str, str], folder: Path) -> Answer:
    async with memory_of(folder, documents) as memory:
        found = await retrieve(memory, question, LIMITS)
        return await answer_offline(question, question, found, memory, LIMITS)


def keeper(mark: str) -> str:
    entries = "".join(f"{mark.replace('1', str(n))} {duty}\n" for n, duty in enumerate(DUTIES, 1))
    return f"# The towers\n\n{NIGHT}\n## Keeper\n\n{KEEPER}\n\n{entries}\n## Pay\n\n{NIGHT * 3}"


@pytest.mark.parametrize("mark", ["-", "1.", "(1)", "•", "  1a)"])
async def test_the_list_is_on_the_first_card_whole_with_what_introduces_it(mark: str, tmp_path: Path) -> None:
    answer = await ask("What are the duties of the keeper?", {"towers.md": keeper(mark)}, tmp_path)
    text = answer.cards[0].text
    assert text.startswith(KEEPER)
    assert [duty for duty in DUTIES if duty not in text] == []
    assert answer.grounded
    assert answer.cards[0].location == "towers.md:7–26"


async def test_without_the_document_the_best_passages_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(_: MemoryClient, document: str) -> None:
        raise MemoryUnavailable(f"{document} is gone.")

    monkeypatch.setattr(MemoryClient, "show", gone)
    answer = await ask("What are the duties of the keeper?", {"towers.md": keeper("-")}, tmp_path)
    assert KEEPER in answer.cards[0].text
    assert len(answer.cards[0].text) <= SIZES[0]


@pytest.mark.parametrize("question", ["list of the keeper's duties", "a full list of duties of the keeper"])
async def test_a_list_is_also_asked_for_by_its_name(question: str, tmp_path: Path) -> None:
    answer = await ask(question, {"towers.md": keeper("-")}, tmp_path)
    assert [duty for duty in DUTIES if duty not in answer.cards[0].text] == []


async def test_a_question_for_one_thing_has_a_card_of_the_usual_size(tmp_path: Path) -> None:
    answer = await ask("Which duty does the keeper have in tower 9?", {"towers.md": keeper("-")}, tmp_path)
    assert DUTIES[8] in answer.cards[0].text
    assert len(answer.cards[0].text) <= SIZES[0]


async def test_a_long_list_is_shown_from_its_introduction_on_in_whole_lines_and_says_that_it_goes_on(
    tmp_path: Path,
) -> None:
    document = keeper("-").replace(
        "whatever the weather is", "whatever the weather of that part of the season is"
    )
    answer = await ask("What are the duties of the keeper?", {"towers.md": document}, tmp_path)
    text, mark = answer.cards[0].text.rsplit("\n", 1)
    assert text.startswith(KEEPER)
    assert len(text) <= SIZE
    assert text.endswith("season is that day")
    assert mark == f"{ELLIPSIS} lines {7 + len(text.splitlines())}–26"


async def test_of_a_long_paragraph_the_last_sentences_introduce_a_list(tmp_path: Path) -> None:
    document = keeper("-").replace(KEEPER, f"{NIGHT.strip()} " * 40 + KEEPER)
    answer = await ask("What are the duties of the keeper?", {"towers.md": document}, tmp_path)
    text = answer.cards[0].text
    assert KEEPER in text
    assert text.index(KEEPER) <= MAX_INTRO
    assert f"- {DUTIES[9]}" in text
    assert len(text) <= SIZE + 20


async def test_an_entry_that_does_not_fit_a_card_is_shown_in_part(tmp_path: Path) -> None:
    document = keeper("-").replace("- wind", f"- first, {'and then ' * 300}wind", 1)
    answer = await ask("What are the duties of the keeper?", {"towers.md": document}, tmp_path)
    text, mark = answer.cards[0].text.rsplit("\n", 1)
    assert text.startswith(f"{KEEPER}\n\n- first, and then")
    assert len(text) <= SIZE
    assert mark == f"{ELLIPSIS} lines 10–26"


async def test_a_list_inside_the_first_entry_does_not_hide_the_list_around_it(tmp_path: Path) -> None:
    woods = "".join(f"  - wood of kind {number}, dry and split\n" for number in range(1, 9))
    rules = "".join(f"- {duty}\n" for duty in DUTIES[:12])
    document = f"# Hut\n\n{NIGHT}\n## Rules of the hut\n\n- Burn only\n{woods}{rules}\n## Way\n\n{NIGHT * 3}"
    answer = await ask("What are the rules of the hut?", {"hut.md": document}, tmp_path)
    assert [duty for duty in DUTIES[:12] if duty not in answer.cards[0].text] == []


async def test_code_between_the_steps_of_a_list_is_part_of_it(tmp_path: Path) -> None:
    steps = "".join(
        f"{n}. {duty}:\n\n   ```sh\n   # tower {n}\n   wind\n   ```\n\n"
        for n, duty in enumerate(DUTIES[:9], 1)
    )
    document = (
        f"# The towers\n\n{NIGHT}\n## Keeper\n\nThe steps of the keeper are:\n\n{steps}## Pay\n\n{NIGHT * 3}"
    )
    answer = await ask("What are the steps of the keeper?", {"towers.md": document}, tmp_path)
    text = answer.cards[0].text
    assert text.startswith("The steps of the keeper are:")
    assert [duty for duty in DUTIES[:9] if duty not in text] == []


async def test_the_list_inside_an_entry_is_shown_with_that_entry(tmp_path: Path) -> None:
    document = (
        "# Statutes\n\n(1) The guild is old.\n\n(2) Exempt from the toll are\n\n"
        "1.  bakers,\n\n\n2.  boys of the choir, and\n    their teachers,\n\n\n3.  carriers of salt.\n\n\n"
        "(3) The toll is paid in June. Bakers pay late.\n"
    )
    answer = await ask("Which groups are exempt from the toll?", {"statutes.txt": document}, tmp_path)
    text = answer.cards[0].text
    assert "(2) Exempt from the toll are" in text
    assert "3.  carriers of salt." in text


async def test_a_list_about_something_else_is_not_shown_first(tmp_path: Path) -> None:
    document = (
        "# Hut\n\nThe wood is oak, ash and beech. We buy it in May, when it is cheap, and stack it.\n\n"
        "To be done:\n\n- sweep the roof\n- oil the lock\n- mow the meadow\n- mend the gate of the garden\n"
    )
    answer = await ask("Which kinds of wood are in the hut?", {"hut.md": document}, tmp_path)
    assert answer.cards[0].text.startswith("The wood is oak, ash and beech.")


async def test_a_window_that_shows_all_of_the_list_keeps_what_follows_it(tmp_path: Path) -> None:
    document = (
        "# Bobbins\n\n- Pull the wheel.\n- Wind the thread.\n- Cut it.\n\nUse only bobbins of class V15.\n"
    )
    answer = await ask("Machine: which bobbins?", {"machine.md": document}, tmp_path)
    assert "class V15" in answer.cards[0].text
    assert "- Wind the thread." in answer.cards[0].text
