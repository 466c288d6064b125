"""ChunkerInput code cut into chunks by its functions and classes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmemory.ingest.chunking import ChunkerInput, split
from ragmemory.text.languages import LANGUAGES, Language, language_of
from ragmemory.types.writes import Chunk
from tests.server.code.samples import SAMPLES, Sample, skip_without_grammar
from tests.server.ingest.test_chunking import count_words, flat, texts

DEEP = "".join(f"        x = compute({number}, 'a rather long argument')\n" for number in range(20))
BODY = "".join(f"    x = compute({number}, 'a rather long argument')\n" for number in range(20))


def cut(text: str, path: str = "a.py", max_tokens: int = 400) -> list[Chunk]:
    return cut_as(text, language_of(path), max_tokens)


def cut_as(text: str, language: Language | None, max_tokens: int) -> list[Chunk]:
    source = ChunkerInput(text, is_markdown=False, is_prose=False, language=language)
    return flat(split([source], max_tokens=max_tokens, count=count_words))


def headings(chunks: list[Chunk]) -> list[str]:
    return [chunk.heading for chunk in chunks]


def test_each_function_is_a_chunk_under_its_qualified_name() -> None:
    text = (
        f"import os\n\nclass Store:\n    limit = 1\n\n    def find(self):\n{DEEP}\n"
        f"    @cached\n    def load(self):\n{DEEP}\n\n# Runs.\ndef main():\n{BODY}"
    )
    chunks = cut(text)
    assert headings(chunks) == ["Store", "Store.find", "Store.load", "main"]
    assert texts(text, chunks)[2].lstrip().startswith("@cached\n")
    assert texts(text, chunks)[3].startswith("# Runs.\ndef main")
    assert [chunk.start_line for chunk in chunks] == [1, 6, 28, 52]


def test_small_neighbours_share_a_chunk_that_names_them_all() -> None:
    assert headings(cut("def a(): pass\n\n\ndef b(): pass\n\n\nclass C:\n    def d(self): pass\n")) == [
        "a, b, C, C.d"
    ]


def test_a_chunk_of_several_definitions_says_where_each_begins() -> None:
    text = "import os\n\n\ndef a(): pass\n\n\n# Counts.\ndef b(): pass\n\n\nclass C:\n    def d(self): pass\n"
    (chunk,) = cut(text)
    assert chunk.headings == [(1, ""), (4, "a"), (7, "b"), (11, "C"), (12, "C.d")]
    assert not any(one.headings for one in cut(f"def main():\n{BODY * 10}"))


def test_a_long_function_is_cut_between_its_lines_and_each_part_has_its_name() -> None:
    text = f"def main():\n{BODY * 10}"
    chunks = cut(text)
    assert len(chunks) > 1
    assert set(headings(chunks)) == {"main"}
    assert all(part.endswith("\n") for part in texts(text, chunks))


def test_the_end_of_a_class_belongs_to_its_last_function() -> None:
    body = "    compute(1, 'a rather long argument');\n" * 20
    text = f"class A {{\n  run() {{\n{body}  }}\n}}\n\nfunction main() {{\n{body}}}\n"
    chunks = cut(text, "a.js")
    assert headings(chunks) == ["A", "A.run", "main"]
    assert texts(text, chunks)[1].endswith("  }\n}\n\n")


def test_nested_functions_have_no_chunks_of_their_own() -> None:
    assert headings(cut(f"def main():\n    def inner():\n{DEEP}{BODY}")) == ["main"]


def test_code_that_is_not_parsed_is_cut_at_its_lines() -> None:
    text = "x = compute(1, 2, 3)\n" * 40_000
    chunks = cut(text)
    assert "".join(texts(text, chunks)) == text
    assert set(headings(chunks)) == {""}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.path)
def test_the_names_of_a_file_are_the_headings_of_its_chunks(sample: Sample) -> None:
    skip_without_grammar(sample.path)
    chunks = cut(sample.text, sample.path)
    assert "".join(texts(sample.text, chunks)) == sample.text
    named = {name for chunk in chunks for name in chunk.heading.split(", ")}
    inner = {"Store.find.inner"}  # inside a function
    assert set(sample.definitions.split()) - inner <= named


FRAGMENTS = [
    *(sample.text[start : start + 60] for sample in SAMPLES for start in range(0, len(sample.text), 60)),
    *(
        "\n",
        "\n\n",
        "  ",
        "\r\n",
        "é",
        "名",
        "\U0001f600",
        "\ud800",
        "\0",
        "{",
        "}",
        '"',
        "'''",
        "end\n",
        ";",
    ),
]


@given(
    st.one_of(st.text(), st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)),
    st.sampled_from(LANGUAGES),
    st.integers(2, 40),
)
def test_chunks_join_to_the_text(text: str, language: Language, max_tokens: int) -> None:
    chunks = cut_as(text, language, max_tokens)
    assert "".join(texts(text, chunks)) == text
    assert all(chunk.start < chunk.end for chunk in chunks)
    lines = [chunk.start_line for chunk in chunks]
    assert lines == sorted(lines)
