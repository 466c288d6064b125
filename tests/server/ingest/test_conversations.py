"""Conversations are recognised by their turns, which become chunks with the words of their neighbours."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragmemory.ingest.chunking import ChunkerInput, split
from ragmemory.types.writes import Chunk

CALM = "and so it stays as quiet as it ever was around the lake in all of these long and slow weeks of summer"


def cut(text: str, max_tokens: int = 60, *, is_markdown: bool = True, is_prose: bool = True) -> list[Chunk]:
    sources = [ChunkerInput(text, is_markdown, is_prose=is_prose)]
    groups = split(sources, max_tokens=max_tokens, count=lambda texts: [len(one.split()) for one in texts])
    return [chunk for group in groups for _, chunk in group]


def texts(text: str, chunks: list[Chunk]) -> list[str]:
    return [text[chunk.start : chunk.end] for chunk in chunks]


def talk(*labels: str) -> str:
    """A conversation of six turns by two speakers."""
    said = ("Is it calm?", "Very.", "Who rows?", "The boat is Ida's.", "Then ask her!", "She rows.")
    return "".join(f"{labels[number % len(labels)]} {words} {CALM}.\n" for number, words in enumerate(said))


CONVERSATIONS = {
    "plain": talk("Anna:", "Ben:"),
    "bold with a time": talk("**Anna** (10:42):", "**Ben** (10:43):"),
    "bold": talk("**You:**", "**Helper:**"),
    "bold, the colon outside": talk("**Anna**:", "**Ben**:"),
    "date and time in brackets": talk("[2024-05-03 10:42] Anna:", "[2024-05-03 10:43] Dr. Ben Okoro:"),
    "WhatsApp on Android": talk("03/05/2024, 10:42 - Anna:", "03/05/2024, 10:43 - +49 170 1234567:"),
    "WhatsApp in the USA": talk("5/3/24, 9:42\u202fPM - Anna:", "5/3/24, 9:43\u202fPM - Ben:"),
    "WhatsApp in Spain": talk("3/5/24, 9:42\u202fp.\xa0m. - Anna:", "3/5/24, 9:43\u202fp.\xa0m. - Ben:"),
    "WhatsApp in France": talk("03/05/2024 à 10:42 - Anna:", "03/05/2024 à 10:43 - Ben:"),
    "WhatsApp in Brazil": talk("03/05/2024 10:42 - Anna:", "03/05/2024 10:43 - Ben:"),
    "WhatsApp in Finland": talk("3.5.2024 klo 10.42 - Anna:", "3.5.2024 klo 10.43 - Ben:"),
    "WhatsApp in Hungary": talk("2024. 05. 03. 10:42 - Anna:", "2024. 05. 03. 10:43 - Ben:"),
    "WhatsApp in Japan": talk("2024/05/03 10:42 - Anna:", "2024/05/03 10:43 - Ben:"),
    "WhatsApp in China": talk("2024/5/3 上午10:42 - Anna:", "2024/5/3 下午1:43 - Ben:"),
    "WhatsApp in Korea": talk("2024. 5. 3. 오전 10:42 - Anna:", "2024. 5. 3. 오후 1:43 - Ben:"),
    "WhatsApp in Egypt": talk("\u200f٣/٥/٢٠٢٤، ١٠:٤٢ ص - Anna:", "\u200f٣/٥/٢٠٢٤، ١:٤٣ م - Ben:"),
    "WhatsApp in the USA on iOS": talk("[5/3/24, 9:42:13\u202fPM] Anna:", "[5/3/24, 9:43:59\u202fPM] Ben:"),
    "signal-export": talk("[2024-05-03 10:42:13] Me:", "[2024-05-03 10:43:59] Ben:"),
    "WhatsApp on iOS": talk("\u200e[03.05.24, 10:42:13] Anna:", "[03.05.24, 10:43:59] ~ Ben:"),
    "time only": talk("10:42 Anna:", "10:43 Ben:"),
    "time after the name": talk("Anna (10:42):", "Ben (10:43):"),
    "Zoom": talk(
        "10:42:13 From Anna Roe (she/her) to Everyone:", "10:43:59\t From  Ben  to  Anna(Direct Message) :"
    ),
    "Chinese": talk("[2024-05-03 10:42] 安娜:", "[2024-05-03 10:43] 本:"),
}


@pytest.mark.parametrize("text", CONVERSATIONS.values(), ids=CONVERSATIONS)
@pytest.mark.parametrize("is_markdown", [True, False], ids=["Markdown", "plain text"])
def test_each_turn_is_a_chunk_that_has_the_two_turns_around_it(text: str, is_markdown: bool) -> None:
    lines = text.splitlines(keepends=True)
    chunks = cut(text, is_markdown=is_markdown)
    assert texts(text, chunks) == lines
    assert chunks[3].surroundings.splitlines() == "".join([*lines[1:3], *lines[4:6]]).splitlines()
    assert chunks[0].surroundings.splitlines() == "".join(lines[1:3]).splitlines()
    assert {chunk.context for chunk in chunks} == {""}


@pytest.mark.parametrize(
    "form", ["{}   0:03", "{}\t10:42 AM", "{}\nToday at 10:42 AM", "{}\n03/05/2024 10:42"]
)
@pytest.mark.parametrize("end", ["\n", "\n\n"], ids=["dense", "apart"])
def test_the_name_and_the_time_may_be_above_the_text_as_in_transcripts_of_meetings(
    form: str, end: str
) -> None:
    said = ("Is it calm?", "Very.", "Who rows?", "Ida's boat.", "Ask her!", "She rows.")
    names = ("Anna Roe", "Ben Okoro")
    turns = [f"{form.format(names[n % 2])}\n{words} {CALM}.{end}" for n, words in enumerate(said)]
    text = "".join(turns)
    assert texts(text, cut(text, is_markdown=False)) == turns


ENTRY = "a rather long line about nothing that matters to any of the readers of this"
OTHERS = {
    "settings": "".join(f"Key{number}: value {number}\n" for number in range(40)),
    "records": "".join(f"Name: Lamp {number}\nPrice: {number}\n\n" for number in range(20)),
    "records of sentences": "".join(
        f"Name: A lamp.\nUse: Is it light? {number}.\nCare: Dust it.\n\n" for number in range(20)
    ),
    "questions and answers": "".join(f"Q: Is {number} odd?\nA: It is not.\n\n" for number in range(20)),
    "a log": "".join(
        f"[2024-05-03 10:42:{n}] {'INFO' if n % 2 else 'ERROR'}: {ENTRY}\n" for n in range(10, 50)
    ),
    "a glossary": "".join(f"Term{number}: Is it a word? It is.\n" for number in range(40)),
    "remarks in prose": "".join(f"{ENTRY}.\n\nNote: take care. Why?\n\n{ENTRY}.\n\n" for _ in range(20)),
    "a time sheet": "In   08:00\nOut   16:30\n" * 20,
    "one speaker": "".join(f"Anna: Am I alone? I am, {number} times.\n" for number in range(40)),
    "examples": "**Input:** 3 4\n**Output:** 7\n\n" * 20,
    "three turns": "Anna: Is it calm?\nBen: It is.\nAnna: Good.\n",
    "names in a protocol": f"Anna: {ENTRY}.\n{ENTRY}.\n{ENTRY}.\nBen: {ENTRY}?\n{ENTRY}.\n{ENTRY}.\n" * 10,
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_a_text_that_only_looks_like_a_conversation_is_not_split_into_turns(text: str) -> None:
    assert {chunk.surroundings for chunk in cut(text)} == {""}


def test_code_and_logs_are_never_conversations() -> None:
    text = CONVERSATIONS["time only"]
    assert {chunk.surroundings for chunk in cut(text, is_markdown=False, is_prose=False)} == {""}


def test_short_turns_share_a_chunk() -> None:
    text = "".join(f"10:{number} {'Anna' if number % 2 else 'Ben'}: ok\n" for number in range(10, 60))
    chunks = cut(text)
    assert len(chunks) == 4
    assert "".join(texts(text, chunks)) == text
    assert all(one.endswith("ok\n") for one in texts(text, chunks))
    assert len(chunks[1].surroundings.splitlines()) == 4


def test_the_title_and_the_date_above_the_first_turn_help_to_find_every_turn() -> None:
    text = f"# The lake\n\nOn 3 May, in Hollow\n\n{CONVERSATIONS['plain']}"
    chunks = cut(text)
    assert texts(text, chunks)[0].startswith("# The lake\n\nOn 3 May")
    assert "On 3 May" not in chunks[0].surroundings
    assert all("On 3 May, in Hollow" in chunk.surroundings for chunk in chunks[1:])
    assert {chunk.heading for chunk in chunks} == {"The lake"}


def test_a_notice_of_the_messenger_is_not_quoted_with_the_first_turn() -> None:
    notice = "[3/5/24, 10:40] Messages and calls are end-to-end encrypted.\n"
    turns = talk("[3/5/24, 10:42] Anna:", "[3/5/24, 10:44] Bob:")
    first, second, *_ = cut(notice + turns)
    assert texts(notice + turns, [first]) == [notice]
    assert second.start == len(notice)


def test_the_heading_of_a_day_belongs_to_the_turn_below_it() -> None:
    turns = CONVERSATIONS["bold"].splitlines(keepends=True)
    text = "".join([*turns[:3], "\n## 4 May\n\n", *turns[3:]])
    chunks = cut(text)
    assert texts(text, chunks)[3] == f"## 4 May\n\n{turns[3]}"
    assert [chunk.heading for chunk in chunks] == ["", "", "", "4 May", "4 May", "4 May"]


def test_turns_have_no_neighbours_in_another_conversation() -> None:
    turns = CONVERSATIONS["bold"].splitlines(keepends=True)
    text = "".join(["# general\n\n", *turns[:3], "\n# shop-floor\n\n", *turns[3:]])
    chunks = cut(text)
    assert turns[3].strip() not in chunks[2].surroundings
    assert turns[1].strip() in chunks[2].surroundings
    assert turns[2].strip() not in chunks[3].surroundings
    assert turns[4].strip() in chunks[3].surroundings


def test_a_long_turn_is_cut_and_each_part_has_the_turns_around_it() -> None:
    turns = CONVERSATIONS["time only"].splitlines(keepends=True)
    turns[2] = f"10:42 Anna: {'The boat is red. ' * 60}\n"
    text = "".join(turns)
    parts = [chunk for chunk in cut(text) if "boat is red" in text[chunk.start : chunk.end]]
    assert len(parts) > 3
    assert {chunk.surroundings.splitlines()[0] for chunk in parts} == {turns[0].strip()}


def test_the_surroundings_are_short_however_long_the_turns_are() -> None:
    text = "".join(f"10:42 {name}: {'word ' * 5_000}\n" for name in ("Anna", "Ben", "Anna", "Ben", "Anna"))
    assert max(len(chunk.surroundings) for chunk in cut(text)) < 1_300


LINES = st.sampled_from(
    ("Anna: Is it?", "Ben: It is.", "10:42 Ida: yes", "# Day", "", "more of it", "```", "| a | b |", "- item")
)


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(LINES, max_size=40), st.sampled_from(("\n", "\r\n", "\n\n")), st.integers(3, 60))
def test_the_text_is_still_the_texts_of_its_chunks(lines: list[str], end: str, max_tokens: int) -> None:
    text = "".join(
        f"{line}{end}" for line in ["10:41 Anna: a", "10:42 Ben: b", *lines, "10:43 Anna: c", "9:44 Ben: d"]
    )
    chunks = cut(text, max_tokens)
    assert "".join(texts(text, chunks)) == text
    assert [(one.end, one.end_line <= two.start_line) for one, two in pairwise(chunks)] == [
        (two.start, True) for two in chunks[1:]
    ]
