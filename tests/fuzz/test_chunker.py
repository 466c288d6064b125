"""The chunker on hostile texts: nothing is lost, no chunk is too long, and the time is linear."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragmemory.ingest.chunking import ChunkerInput, split
from ragmemory.types.writes import Chunk
from tests.fuzz.hostile import UNSHRUNK, few, processor_seconds, repeated, texts
from tests.support.memories import LOCAL

MAX_TOKENS = 512
# Characters of a chunk for each token it may have. Far more than any prose has; what matters is that there
# is a limit.
MAX_CHARACTERS_PER_TOKEN = 64
LONG = 200_000
# Twenty times what a text of this length takes.
PROCESSOR_SECONDS = 4.0


def cut(text: str, max_tokens: int = MAX_TOKENS, *, markdown: bool = True) -> list[Chunk]:
    found = split([ChunkerInput(text, markdown)], max_tokens=max_tokens, count=LOCAL.count_tokens)
    return [chunk for group in found for _, chunk in group]


def check(text: str, chunks: list[Chunk], max_tokens: int) -> None:
    parts = [text[chunk.start : chunk.end] for chunk in chunks]
    assert "".join(parts) == text
    assert all(parts)
    assert all(0 < chunk.start_line <= chunk.end_line <= text.count("\n") + 1 for chunk in chunks)
    # Where a line lies by its newlines alone, whatever else the chunker takes for the end of one.
    lines = text.split("\n")
    for chunk, part in zip(chunks, parts, strict=True):
        if part.strip():
            assert part.strip() in "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
    assert max(map(len, parts), default=0) <= MAX_CHARACTERS_PER_TOKEN * max_tokens
    assert max(LOCAL.count_tokens(parts), default=0) <= max_tokens if parts else True


@few(60)
@given(texts, st.booleans(), st.sampled_from([16, 40, MAX_TOKENS]))
def test_a_text_is_cut_into_chunks_that_join_to_it_and_fit(
    text: str, markdown: bool, max_tokens: int
) -> None:
    check(text, cut(text, max_tokens, markdown=markdown), max_tokens)


@settings(few(12), phases=UNSHRUNK)
@given(repeated(LONG), st.booleans())
def test_a_long_repetition_is_cut_in_linear_time(text: str, markdown: bool) -> None:
    with processor_seconds(PROCESSOR_SECONDS):
        chunks = cut(text, markdown=markdown)
    check(text, chunks, MAX_TOKENS)


@pytest.mark.parametrize(
    "text",
    [
        "# a\n" * (LONG // 4),
        "## " + "b" * 290 + "\n" * (LONG // 300),
        "Title\n" + "=" * LONG,
        "Title\n" + "-" * LONG + "\nbody",
        "# a" + " " * 2_000 + "b",
        "# a" + " #" * (LONG // 2),
        "# a\n## b\n" * (LONG // 9),
        "Title\n===\n" * (LONG // 10),
        "```\n" * (LONG // 4),
        "| a | b |\n" * (LONG // 10),
        "|" * LONG,
        "- a\n" * (LONG // 4),
        "\n" * LONG,
        " " * LONG,
        "a" + "\u0301" * LONG,
        "\x00" * LONG,
        "." * LONG,
        "。" * LONG,
        '."' * (LONG // 2),
        "x" * LONG,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_texts_that_once_took_long(text: str) -> None:
    with processor_seconds(PROCESSOR_SECONDS):
        chunks = cut(text)
    check(text, chunks, MAX_TOKENS)
