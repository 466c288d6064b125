"""Where to begin after the first load: headings, telling words, and questions that memory answers."""

from __future__ import annotations

from pathlib import Path

from ragchat.ingest.beginning import BEGINNING, Beginning, where_to_begin
from ragchat.memory.types import DocumentText
from ragchat.turn.limits import RetrievalLimits
from tests.support.memory import memory_of

LIMITS = RetrievalLimits(8, 0.3, 30.0)
TEA = (
    "# Tea\n\nGyokuro is a green tea that is grown in the shade. Gyokuro costs more than sencha.\n\n"
    "## Water for brewing\n\nThe water for brewing gyokuro has 50 degrees.\n"
)
MILL = (
    "# Die Mühle\n\n## Wann wird gemahlen?\n\nGemahlen wird an jedem zweiten Sonntag.\n\n"
    "## Flügel und Zapfen\n\nDie Flügel und Zapfen werden im Frühjahr geprüft.\n"
)


async def begin(folder: Path, documents: dict[str, str]) -> Beginning:
    async with memory_of(folder, documents) as memory:
        return await where_to_begin(memory, LIMITS)


async def test_questions_are_made_from_headings_and_definitions_of_all_documents(tmp_path: Path) -> None:
    found = await begin(tmp_path, {"tea.md": TEA, "muehle.md": MILL})
    assert found.questions[:2] == ["Wann wird gemahlen?", "What is gyokuro?"]
    last = ("What is said about water for brewing?", "Was steht über Flügel und Zapfen?")
    assert found.questions[2] in last
    [group] = found.groups
    assert (group.documents, len(group.words)) == (2, 4)
    shown = "\n".join(found.lines(80))
    assert "    Tea · Die Mühle" in shown or "    Die Mühle · Tea" in shown
    assert '  ragchat ask "What is gyokuro?"' in shown


async def test_of_a_single_document_the_headings_are_shown(tmp_path: Path) -> None:
    found = await begin(tmp_path, {"tea.md": TEA})
    assert [group.about for group in found.groups] == ["Tea: Water for brewing"]


async def test_a_question_without_an_answer_is_not_shown(tmp_path: Path) -> None:
    found = await begin(
        tmp_path, {"a.md": "# Ideas\n\n## How does the moon shine?\n\n## Later\n\nNothing here.\n"}
    )
    assert found.questions == []
    assert "They answer, for example:" not in list(found.lines(80))


async def test_an_empty_memory_has_nothing_to_say(tmp_path: Path) -> None:
    assert list((await begin(tmp_path, {})).lines(80)) == []


def test_a_model_gets_whole_lines_of_the_beginnings() -> None:
    texts = ["short", "x" * 1_500 + "\n" + "y" * 1_500, "z" * 3_000]
    found = Beginning(documents=[DocumentText.loose(text[:1], text) for text in texts])
    assert [one.text for one in found.beginnings] == ["short", "x" * 1_500 + "\n", "z" * BEGINNING]
