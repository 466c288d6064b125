"""Whether passages answer a question, with the real embedder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from ragchat.grounding.evidence import gather
from ragchat.grounding.judging import SIGNALS, Closeness, Judgement, judge
from ragchat.grounding.question import Question
from tests.support.memory import memory_in

NOTES = {
    "Boiler": "The boiler was serviced in March.\nIts pressure must be 1.5 bar.\nIt burns wood.",
    "Garden": "The tomatoes are watered every evening.\nThe hose is behind the shed.",
    "Crane": "The gearbox of the crane holds 14 litres of oil.\nThe oil is changed once a year.",
}
RULES = (
    "Members who rent the common room pay a deposit of {} euros. It is returned within 14 days after the "
    "caretaker has inspected the room. Who does not return the key in time pays 10 euros for each day."
)


async def judged(folder: Path, text: str, notes: Mapping[str, str] = NOTES) -> Judgement:
    async with memory_in(folder) as memory:
        for title, note in notes.items():
            await memory.inject(note, {"title": title})
        found = await memory.query(text)
        question = Question.of(text, text, found.weights)
        return judge(question, await gather(question, found.hits, memory))


@pytest.mark.parametrize(
    ("question", "state"),
    [
        ("What must the pressure of the boiler be?", Closeness.GROUNDED),
        ("How much oil does the gearbox of the crane hold?", Closeness.GROUNDED),
        ("Who painted the boiler green?", Closeness.NEAREST),
        ("Which galaxy collides with ours?", Closeness.NOTHING),
        ("Why?", Closeness.NOTHING),
    ],
)
async def test_a_claim_is_made_only_where_passages_hold_what_is_asked(
    tmp_path: Path, question: str, state: Closeness
) -> None:
    assert (await judged(tmp_path, question)).state is state


async def test_a_name_that_no_passage_holds_makes_it_nearest(tmp_path: Path) -> None:
    judgement = await judged(tmp_path, "How much oil does the gearbox of the crane Titanic hold?")
    assert judgement.state is Closeness.NEAREST
    assert judgement.missing == ["Titanic"]


async def test_a_name_in_the_title_is_not_missing(tmp_path: Path) -> None:
    assert (await judged(tmp_path, "When is the Boiler serviced?")).missing == []


async def test_another_version_of_the_passage_that_answers_is_no_rival_of_it(tmp_path: Path) -> None:
    question = "How much must I pay if I forget to return the key?"
    alone = await judged(tmp_path / "one", question, NOTES | {"Rules 2024": RULES.format(220)})
    deposits = {2019: 150, 2024: 220}
    versions = {f"Rules {year}": RULES.format(deposit) for year, deposit in deposits.items()}
    together = await judged(tmp_path / "two", question, NOTES | versions)
    assert together.state is alone.state is Closeness.GROUNDED
    assert together.signals["lead"] == pytest.approx(alone.signals["lead"], abs=0.05)


async def test_many_versions_of_the_passage_that_answers_are_no_rivals_of_it(tmp_path: Path) -> None:
    text = "How much must I pay if I forget to return the key?"
    async with memory_in(tmp_path) as memory:
        await memory.inject(RULES.format(150), {"title": "Rules"})
        found = await memory.query(text)
        question = Question.of(text, "", found.weights)
        deposits = range(150, 200, 10)
        versions = [replace(found.hits[0], text=RULES.format(deposit)) for deposit in deposits]
        judgement = judge(question, await gather(question, versions, memory))
    assert judgement.signals["lead"] > 0.3


async def test_records_of_one_template_are_rivals(tmp_path: Path) -> None:
    record = "Invoice {} for {}. The total is {} euros. It is due within 14 days. Thank you for your order."
    given = ((17, "Keller", 1450), (18, "Meier", 310), (19, "Schulz", 720), (20, "Weber", 95))
    invoices = {f"Invoice {number}": record.format(number, name, sum) for number, name, sum in given}
    judgement = await judged(tmp_path, "Which customer complained about the invoice?", invoices)
    assert judgement.state is Closeness.NEAREST
    assert judgement.signals["lead"] < 0.05


async def test_many_passages_that_contain_all_that_is_asked_are_no_reason_to_doubt(tmp_path: Path) -> None:
    told = "In {} the boiler room {} and was closed for {} days. The alarm ZX-41 was ignored by {}."
    lists = [(2019, "burned", 3, "Ann"), (2020, "flooded", 9, "Ben"), (2021, "froze", 4, "Cy")]
    lists += [(2022, "smoked", 7, "Di"), (2023, "shook", 1, "Ed"), (2024, "leaked", 6, "Flo")]
    notes = {f"Year {year}": told.format(year, *rest) for year, *rest in lists}
    assert (await judged(tmp_path, "What is ZX-41?", NOTES | notes)).state is Closeness.GROUNDED


async def test_the_lines_of_a_record_are_judged_together(tmp_path: Path) -> None:
    record = '{{\n  "name": "Lamp {}",\n  "colour": "red",\n  "price": {}\n}}'
    lamps = {f"Stock {number}": record.format(number, 10 + number) for number in (7, 17, 27, 37)}
    judgement = await judged(tmp_path, "What is the price of Lamp 17?", NOTES | lamps)
    assert judgement.signals["fit"] > 0.95


async def test_the_signals_are_named(tmp_path: Path) -> None:
    judgement = await judged(tmp_path, "What must the pressure of the boiler be?")
    assert judgement.signals.keys() == SIGNALS.keys()
    assert 0 < judgement.probability < 1


def test_without_passages_there_is_nothing() -> None:
    judgement = judge(Question.of("Where is the pump?"), [])
    assert judgement == Judgement(Closeness.NOTHING, 0.0, {}, ["pump"])
