"""Texts cut into chunks.

Covers `blocks`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmemory.ingest.blocks import MAX_PATH, markdown_blocks
from ragmemory.ingest.chunking import (
    FEW_CHARACTERS,
    INTRODUCTION,
    MANY_CHUNKS,
    MAX_CHARACTERS_PER_TOKEN,
    RUN,
    ChunkerInput,
    TokenCounter,
    split,
)
from ragmemory.types.writes import Chunk
from tests.support.memories import LOCAL


def count_words(texts: list[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def cut(text: str, max_tokens: int = 20, *, markdown: bool = True) -> list[Chunk]:
    return cut_counted(text, max_tokens, count_words, markdown=markdown)


def cut_counted(text: str, max_tokens: int, count: TokenCounter, *, markdown: bool = True) -> list[Chunk]:
    found = split([ChunkerInput(text, markdown)], max_tokens=max_tokens, count=count)
    return flat(found)


def flat(found: Iterable[list[tuple[int, Chunk]]]) -> list[Chunk]:
    return [chunk for chunks in found for _, chunk in chunks]


def texts(text: str, chunks: list[Chunk]) -> list[str]:
    return [text[chunk.start : chunk.end] for chunk in chunks]


MARKDOWN = st.lists(
    st.sampled_from(
        [
            "# One",
            "## Two",
            "###",
            "```",
            "~~~py",
            "| a | b |",
            "- item",
            "1. first",
            "===",
            "---",
            "",
            "  ",
            "words and words.",
            "\r",
            "句子。再来",
            "\u2028",
            "x" * 90,
        ]
    ),
    max_size=40,
).map("\n".join)


@given(st.one_of(MARKDOWN, st.text()), st.booleans(), st.integers(1, 40))
def test_the_ranges_join_to_the_whole_text(text: str, markdown: bool, max_tokens: int) -> None:
    chunks = cut(text, max_tokens, markdown=markdown)
    assert "".join(texts(text, chunks)) == text
    assert all(chunk.start < chunk.end for chunk in chunks)


@given(st.one_of(MARKDOWN, st.text()), st.integers(5, 40))
def test_no_chunk_is_longer_than_asked(text: str, max_tokens: int) -> None:
    assert max(count_words(texts(text, cut(text, max_tokens))), default=0) <= max_tokens


@given(MARKDOWN)
def test_lines_are_those_of_the_visible_text(text: str) -> None:
    lines = text.split("\n")
    for chunk, part in zip(chunks := cut(text), texts(text, chunks), strict=True):
        if part.strip():
            assert "\n".join(lines[chunk.start_line - 1 : chunk.end_line]).count(part.strip()) == 1


def test_an_empty_text_has_no_chunks() -> None:
    assert cut("") == []


def test_a_chunk_knows_the_path_of_headings_above_it() -> None:
    text = "# Soup\n\nBoil it.\n\n## Salt\n\nA little.\n\n### Sea\n\nBetter.\n\n## Pepper\n\nNone.\n"
    assert [(chunk.heading, chunk.start_line, chunk.end_line) for chunk in cut(text)] == [
        ("Soup", 1, 3),
        ("Soup > Salt", 5, 7),
        ("Soup > Salt > Sea", 9, 11),
        ("Soup > Pepper", 13, 15),
    ]


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("Soup\n====\n\nBoil it.\n\nSalt\r\n----\r\nA little.\n", ["Soup", "Soup > Salt"]),
        ("Soup\n===\n\n# Stew\n\nBoil it.\n", ["Stew"]),
        ("---\ntitle: Soup\n---\nBoil it.\n", [""]),
        ("Boil it.\n\n---\n\nSalt it.\n", [""]),
        ("- Boil it.\n---\n", [""]),
        ("> Boil it.\n---\n", [""]),
        ("    boil()\n---\n", [""]),
        ("| Boil |\n---\n", [""]),
        ("Yours,\n-- \nAnn\n", [""]),
        ("Boil it,\nand salt it.\n---\n", [""]),
        ("```\nSoup\n====\n```\n", [""]),
        ("# Soup #\n\nBoil it.\n", ["Soup"]),
        ("# C#\n\nBoil it.\n", ["C#"]),
        ("#soup and #salt\n", [""]),
    ],
)
def test_headings_are_marked_or_underlined_and_rules_are_none(text: str, headings: list[str]) -> None:
    assert [chunk.heading for chunk in cut(text)] == headings


def test_a_line_too_long_to_be_repeated_in_every_chunk_is_not_a_heading() -> None:
    long = "word " * 100
    for text in (f"# {long}\n\n", f"{long}\n====\n\n"):
        assert {chunk.heading for chunk in cut(text + "words. " * 100)} == {""}


def test_a_heading_without_a_text_of_its_own_goes_with_the_next_section() -> None:
    text = "# Soup\n\n## Salt\n\nA little.\n"
    assert [(chunk.heading, chunk.start_line) for chunk in cut(text)] == [("Soup > Salt", 1)]


def test_a_heading_in_html_may_take_several_lines() -> None:
    logo = f'<h1 align="center">\n  <img src="{"a" * 500}">\n  Soup\n</h1>\n'
    text = f'{logo}\nHot.\n\n<h3 id="salt">\nSalt\n</h3>\n\nOne pinch.\n'
    headings = [(block.heading, block.level) for block in markdown_blocks(text) if block.level]
    assert headings == [("Soup", 1), ("Soup > Salt", 3)]


@pytest.mark.parametrize(
    "text", ["```\n<h1>\n```\n# Soup\nHot.\n", "<h1>Never closed\n\n# Soup\nHot.\n", "<h1>\n# Soup\nHot.\n"]
)
def test_a_heading_in_html_that_is_not_closed_takes_in_no_other(text: str) -> None:
    assert [chunk.heading for chunk in cut(text)][-1] == "Soup"


def test_a_number_sign_in_code_is_not_a_heading() -> None:
    text = "# Setup\n\n```sh\n# install\nmake\n```\n"
    assert [chunk.heading for chunk in cut(text)] == ["Setup"]


def test_a_number_sign_in_plain_text_is_not_a_heading() -> None:
    assert [chunk.heading for chunk in cut("# comment\nx = 1\n", markdown=False)] == [""]


@pytest.mark.parametrize(
    "whole",
    [
        "```py\n" + "\n\n".join(f"line({n})" for n in range(15)) + "\n```\n",
        "".join(f"| cell{n} | b |\n" for n in range(3)),
        "- one item that goes on for quite a while\n  and on its second line\n",
        "One sentence. Another one.\n",
    ],
    ids=["fenced code", "table", "list item", "paragraph"],
)
def test_blocks_stay_whole_if_they_fit(whole: str) -> None:
    before, after = "word " * 11 + "\n\n", "\n" + "word " * 11
    text = before + whole + after
    assert any(whole in part for part in texts(text, cut(text)))


def test_long_paragraphs_are_cut_between_sentences() -> None:
    text = " ".join(f"This is the sentence number {n}." for n in range(20))
    assert all(part.rstrip().endswith(".") for part in texts(text, cut(text)))


def test_chinese_and_japanese_sentences_need_no_space() -> None:
    def count(parts: list[str]) -> list[int]:
        return [len(part) for part in parts]

    text = "黑豹队的防守只丢了三百分。他们排名第六！「本当ですか？」そうです。" * 3
    parts = texts(text, cut_counted(text, 20, count))
    assert "".join(parts) == text
    assert all(part[-1] in "。！？」" for part in parts)


def test_long_code_is_cut_between_lines() -> None:
    code = "".join(f"call({n}, 'a. b. c')\n" for n in range(30))
    text = f"```\n{code}```\n"
    assert all(part.endswith("\n") for part in texts(text, cut(text)))


def test_chunks_of_one_section_are_of_about_the_same_size() -> None:
    text = "\n\n".join("word " * 5 for _ in range(5))
    assert [count_words([part])[0] for part in texts(text, cut(text))] == [15, 10]


def test_a_long_line_without_spaces_is_cut_in_linear_time() -> None:
    calls: list[int] = []

    def count(parts: list[str]) -> list[int]:
        calls.append(len(parts))
        return [len(part) for part in parts]

    text = "x" * 1_000_000
    chunks = cut_counted(text, 100, count)
    assert max(chunk.end - chunk.start for chunk in chunks) <= 100
    assert len(calls) <= 5 * len(text) // RUN


@pytest.mark.parametrize("row", [".", "!?", "# " + " " * 200, "\n ", '"', "=\n", "a\n=\n", "。"])
def test_rows_of_marks_are_cut_in_linear_time(row: str) -> None:
    text = row * (50_000 // len(row)) + "x"
    began = time.thread_time()
    chunks = cut_counted(text, 1000, lambda parts: [len(part) for part in parts])
    # It takes 0.2 s; with the square of the length, a minute.
    assert time.thread_time() - began < 5
    assert "".join(texts(text, chunks)) == text


@pytest.mark.parametrize("line", ["x" * 1_600_000, "some words " * 150_000], ids=["no spaces", "one line"])
def test_one_very_long_line_is_counted_run_by_run(line: str) -> None:
    asked: list[int] = []

    def count(parts: list[str]) -> list[int]:
        asked.append(sum(map(len, parts)))
        return [len(part) for part in parts]

    found = split([ChunkerInput(line, is_markdown=False)], max_tokens=500, count=count)
    first = next(found)
    assert sum(asked) < len(line) / 3
    assert "".join(texts(line, flat([first, *found]))) == line


def test_a_very_long_text_is_counted_run_by_run() -> None:
    asked: list[int] = []

    def count(texts: list[str]) -> list[int]:
        asked.append(sum(map(len, texts)))
        return count_words(texts)

    text = "# Part\n\n" + "Some words stand here, in a paragraph of their own.\n\n" * 20_000
    found = split([ChunkerInput(text, is_markdown=True)], max_tokens=100, count=count)
    first = next(found)
    assert sum(asked) < len(text) / 2
    assert "".join(texts(text, flat([first, *found]))) == text


def test_texts_are_cut_the_same_alone_and_together_and_counted_together() -> None:
    asked: list[int] = []

    def count(texts: list[str]) -> list[int]:
        asked.append(len(texts))
        return count_words(texts)

    given = ["# One\n\n", "", "words. " * 30, "# Two\n\n" + "words\n\n" * 9, "  "]
    sources = [ChunkerInput(text, number != 2) for number, text in enumerate(given)]
    found = list(chain.from_iterable(split(sources, max_tokens=20, count=count)))
    assert len(asked) == 2
    for number, text in enumerate(given):
        chunks = [chunk for source, chunk in found if source == number]
        assert chunks == cut(text, markdown=number != 2)
        assert "".join(texts(text, chunks)) == text


ROWS = {
    "headings": "# a\n",
    "bare headings": "#\n",
    "deep headings": "###### a\n",
    "underlined headings": "a\n===\n",
    "long headings": "# " + "h" * 290 + "\n",
    "short sections": "# a\nb\n",
    "items": "- a\n",
    "rows": "| a |\n",
    "fences": "```\n",
    "fence": "`",
    "blank lines": "\n",
    "carriage returns": "\r",
    "spaces": " ",
    "spaced lines": " \n",
    "one word": "a",
    "digits": "1",
    "combining marks": "\u0301",
    "zero width": "\u200b",
    "emoji": "👨‍👩‍👧",
    "grows in lower case": "İ",
    "sentences": "漢。",
    "underline": "=",
}


@pytest.mark.parametrize("markdown", [True, pytest.param(False, marks=pytest.mark.full)])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_chunks_of_any_text_are_bounded_and_made_in_linear_time(row: str, markdown: bool) -> None:
    text = "a\n" + row * (70_000 // len(row))
    began = time.thread_time()
    chunks = cut_counted(text, 512, LOCAL.count_tokens, markdown=markdown)
    # It takes less than 0.5 s; with the square of the length, more than 10 s.
    assert time.thread_time() - began < 5
    parts = texts(text, chunks)
    assert "".join(parts) == text
    assert max(LOCAL.count_tokens(parts)) <= 512
    assert max(map(len, parts)) <= 512 * MAX_CHARACTERS_PER_TOKEN
    assert len(chunks) <= max(MANY_CHUNKS, len(text) // FEW_CHARACTERS)


@pytest.mark.parametrize(
    "text",
    [
        "# a" + " " * 300_000 + "b",
        "a\n" + "=" * 300_000,
        " " * 300_000 + "- a",
        "```" + " " * 300_000 + "\na",
    ],
    ids=["heading", "underline", "item", "fence"],
)
def test_a_very_long_line_is_neither_heading_nor_underline(text: str) -> None:
    began = time.perf_counter()
    chunks = cut_counted(text, 512, LOCAL.count_tokens)
    assert time.perf_counter() - began < 30
    assert "".join(texts(text, chunks)) == text
    assert {chunk.heading for chunk in chunks} == {""}
    assert max(chunk.end - chunk.start for chunk in chunks) <= 512 * MAX_CHARACTERS_PER_TOKEN


def test_a_heading_and_a_text_that_fills_a_chunk_are_cut_so_that_the_heading_is_not_alone() -> None:
    text = "# The heading\n\n" + "Five words are in here. " * 4
    chunks = cut(text, 20)
    assert max(count_words(texts(text, chunks))) <= 20
    assert texts(text, chunks)[0] == "# The heading\n\nFive words are in here. Five words are in here. "


def test_of_a_path_of_long_headings_the_inner_ones_are_kept() -> None:
    text = (
        "".join("#" * level + f" {level}" + "x" * 280 + "\n" for level in range(1, 6))
        + "###### Inner\n\nText.\n"
    )
    [chunk] = [chunk for chunk in cut(text, 100) if "Text." in text[chunk.start : chunk.end]]
    assert chunk.heading.endswith(" > Inner")
    assert 280 < len(chunk.heading) <= MAX_PATH


def test_very_many_sections_with_little_text_are_packed_together() -> None:
    section = "# a\nb\n"
    assert len(cut(section * 1_000)) == 1_000
    assert len(cut(section * 10_000)) < 5_000


def rows_of(count: int) -> str:
    return "".join(f"| lamp {number} | {number} watts |\n" for number in range(count))


HEADER = "| name | power |\n|---|---|\n"


def test_each_chunk_that_continues_a_table_has_its_header_as_context() -> None:
    text = f"# Lamps\n\nAll of them:\n\n{HEADER}{rows_of(60)}\nThat is all.\n"
    chunks = cut(text)
    assert len(chunks) > 10
    assert "".join(texts(text, chunks)) == text
    end = text.index(HEADER) + len(HEADER)
    for chunk in chunks:
        continues = chunk.start >= end and text[chunk.start] == "|"
        assert chunk.context == (HEADER if continues else ""), texts(text, [chunk])


def test_a_table_of_any_length_keeps_its_header() -> None:
    text = f"{HEADER}{rows_of(30_000)}"
    chunks = cut(text, 2_000)
    assert len(text) > 3 * RUN
    assert {chunk.context for chunk in chunks[1:]} == {HEADER}
    assert chunks[0].context == ""


@pytest.mark.parametrize(
    "text",
    [
        rows_of(40),
        f"```\n{HEADER}{rows_of(40)}```\n",
        f"| {'name ' * 200}|\n|---|\n{rows_of(40)}",
        "word " * 200,
    ],
    ids=["no header", "code", "a header that is too long", "prose"],
)
def test_nothing_else_has_a_context(text: str) -> None:
    chunks = cut(text)
    assert len(chunks) > 1
    assert {chunk.context for chunk in chunks} == {""}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_each_chunk_of_a_csv_file_has_the_first_line_as_context(separator: str) -> None:
    lines = [separator.join(["name", "power in watts"])]
    lines += [separator.join([f"lamp {number}", str(number)]) for number in range(60)]
    text = "".join(f"{line}\n" for line in lines)
    chunks = flat(split([ChunkerInput(text, False, is_csv=True)], max_tokens=20, count=count_words))
    found = texts(text, chunks)
    assert len(found) > 5
    assert "".join(found) == text
    assert all(part.endswith("\n") for part in found)
    assert [chunk.context for chunk in chunks] == ["", *[f"{lines[0]}\n"] * (len(chunks) - 1)]


def test_the_rows_of_a_csv_file_with_a_title_and_years_as_columns_have_these_as_context() -> None:
    above = "Felled trees, all parks\n\ntree;2022;2023\n"
    text = above + "".join(f"kind {n};{3 * n};{2 * n}\n" for n in range(60))
    chunks = flat(split([ChunkerInput(text, False, is_csv=True)], max_tokens=20, count=count_words))
    assert "".join(texts(text, chunks)) == text
    assert {chunk.context for chunk in chunks[1:]} == {above}


@pytest.mark.parametrize(
    "header",
    [
        "Tree         Age   Bed\n------------ ----- ---\n",
        "ALL TREES        Page 1\n=======================\nTree         Age   Bed\n-----------------------\n",
        " Tree | Age | Bed \n------+-----+-----\n",
    ],
)
def test_the_rows_of_a_table_with_aligned_columns_have_their_names_as_context(header: str) -> None:
    sign = " | " if "|" in header else "   "
    rows = "".join(sign.join([f"Kind{n:03}", f"{3 * n:5}", "A\n"]) for n in range(60))
    end = "-----------------------\nAll            9999\n\nIt ends here.\n"
    text = f"Below are the trees.\n\n{header}{rows}{end}"
    chunks = plain(text)
    assert "".join(texts(text, chunks)) == text
    assert {chunk.context for chunk in chunks if "Kind030" in text[chunk.start : chunk.end]} == {header}
    assert chunks[-1].context in ("", header)


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("1.  Introduction", "It ends here.  More is below.\nIn May we left.\n"),
        ("1.  Introduction", "1.  Lakes\n2.  Rivers\n3.  Seas\n"),
        ("Dear all,  please note", "The park is closed.  Do not go there.\nThe lake,  too.\n"),
        ("Best regards  and thanks", "Ida  Lake\nMax  Pond\n"),
        ("$ ls  -l", "total  40\n-rw-r--r--  1 ida\n"),
        ("ALL TREES        Page 1", "Oak   40\nElm    3\n"),
    ],
)
def test_underlined_prose_is_no_table(above: str, below: str) -> None:
    text = f"{above}\n-----------\n{below}" + "It goes on and on.\n" * 60
    assert {chunk.context for chunk in plain(text)} == {""}


def test_the_rule_below_aligned_columns_may_have_no_gaps_nor_rows_a_last_cell() -> None:
    header = "Tree       Age   Keeper\n-----------------------\n"
    text = header + "Oak         40   Ida\nElm          3\nAsh\n" * 30
    assert {chunk.context for chunk in plain(text)} == {"", header}


@pytest.mark.parametrize(
    ("header", "sign", "rule"),
    [
        ("┌──────┬─────┐\n│ Tree │ Bed │\n├──────┼─────┤\n", "│", "├──────┼─────┤\n"),
        ("╔══════╦═════╗\n║ Tree ║ Bed ║\n╠══════╬═════╣\n", "║", ""),
        ("+------+-----+\n| Tree | Bed |\n+======+=====+\n", "|", "+------+-----+\n"),
    ],
)
def test_the_rows_of_a_table_that_is_drawn_have_its_first_row_as_context(
    header: str, sign: str, rule: str
) -> None:
    text = header + "".join(f"{sign} T{n:03} {sign} A b {sign}\n{rule}" for n in range(90))
    assert {chunk.context for chunk in plain(text)} == {"", header}


@pytest.mark.parametrize("rule", ["-----\n", "-----  x\n", ""])
def test_a_paragraph_without_columns_or_a_rule_has_no_context(rule: str) -> None:
    text = "Long ago\n" + rule + "we went  home.\n" * 60
    assert {chunk.context for chunk in plain(text)} == {""}


@pytest.mark.parametrize("before", ["", "@string{jl = {Lakes}}\n"])
@pytest.mark.parametrize("between", ["", "\n"])
def test_each_entry_of_a_bibliography_is_a_chunk_under_its_key(before: str, between: str) -> None:
    entries = [
        f"@article{{lee{year},\n  author = {{Ann Lee}},\n  year = {year}\n}}\n" for year in (2019, 2020)
    ]
    text = before + between.join(entries)
    chunks = flat(split([ChunkerInput(text, True, is_bibtex=True)], max_tokens=500, count=count_words))
    assert "".join(texts(text, chunks)) == text
    assert [chunk.heading for chunk in chunks] == ["lee2019", "lee2020"]


def test_a_bibliography_without_entries_is_one_chunk() -> None:
    source = ChunkerInput("None yet.\n", True, is_bibtex=True)
    chunks = flat(split([source], max_tokens=500, count=count_words))
    assert texts(source.text, chunks) == [source.text]


@pytest.mark.parametrize("first", ["lamp,40\n", "a line without cells\n", "", f"{'name,' * 250}\n"])
def test_a_first_line_that_is_not_a_header_is_not_repeated(first: str) -> None:
    text = first + "lamp,40\n" * 60
    chunks = flat(
        split(
            [ChunkerInput(text, False, is_csv=True)],
            max_tokens=20,
            count=lambda all: [len(one) for one in all],
        )
    )
    assert {chunk.context for chunk in chunks} == {""}
    assert "".join(texts(text, chunks)) == text


def plain(text: str, max_tokens: int = 20) -> list[Chunk]:
    source = ChunkerInput(text, is_markdown=False, has_headings=True)
    return flat(split([source], max_tokens=max_tokens, count=count_words))


NAMES = ["Purpose", "Names", "Rooms", "Hours", "Cards", "Fines", "Pets", "End"]
CLAUSES = "".join(
    f"Article {number}\n{name}\n\nIt says {number} words of this clause.\n\n"
    for number, name in enumerate(NAMES, 1)
)


def test_short_sections_of_a_plain_text_share_chunks_that_know_their_headings() -> None:
    chunks = plain(CLAUSES, 36)
    assert "".join(texts(CLAUSES, chunks)) == CLAUSES
    assert [chunk.heading for chunk in chunks] == ["", "", ""]
    assert [number for number, chunk in enumerate(chunks) for _ in chunk.headings] == [0, 0, 0, 1, 1, 1, 2, 2]
    assert chunks[0].headings == [(1, "Article 1 Purpose"), (6, "Article 2 Names"), (11, "Article 3 Rooms")]
    assert all(text.startswith("Article") for text in texts(CLAUSES, chunks))


def test_a_long_section_of_a_plain_text_has_chunks_of_its_own() -> None:
    long = "Many words are in this paragraph. " * 10
    bread, pie = "Bread\n=====\n\nBake it until noon.\n\n", "Pie\n===\n\nEat it now, and all.\n"
    chunks = plain(f"{bread}Cake\n====\n\n{long}\n\n{pie}", 30)
    assert [chunk.heading for chunk in chunks] == ["Bread", *["Cake"] * 4, "Pie"]
    assert all(chunk.headings == [] for chunk in chunks)


def test_headings_alone_and_very_short_sections_stay_with_the_long_one_that_follows() -> None:
    long = "Many words are in this paragraph. " * 10
    text = f"1. Bread\n\n1.1. Rye\n\nBake.\n\n1.2. Wheat\n\n{long}\n\n2. Cake\n\n2.1. Plum\n\n{long}\n"
    chunks = plain(text, 40)
    assert [chunk.heading for chunk in chunks] == [
        *("1. Bread", "1. Bread > 1.2. Wheat"),
        *("2. Cake > 2.1. Plum", "2. Cake > 2.1. Plum"),
    ]
    assert chunks[0].headings == [(1, ""), (3, "1.1. Rye"), (7, "1.2. Wheat")][1:]


def test_a_plain_text_with_the_headings_of_markdown_has_them() -> None:
    text = "# Birds\n\n## Wren\n\nIt is small.\n\n## Owl\n\nIt is awake.\n\n# Fish\n\nThey swim.\n"
    (chunk,) = plain(text, 100)
    assert chunk.headings == [(1, "Birds"), (3, "Birds > Wren"), (7, "Birds > Owl"), (11, "Fish")]


@pytest.mark.parametrize("markdown", [True, False])
def test_a_sentence_that_introduces_a_list_is_not_parted_from_it(markdown: bool) -> None:
    above = f"{'word ' * 12}ends."
    text = f"{above}\n\nStart it with this command:\n\n    kite --fly now and then again\n\nDone now.\n"
    first, second, *_ = texts(text, cut(text, 18, markdown=markdown))
    assert first.rstrip().endswith("ends.")
    assert second.startswith("Start it with this command:\n\n    kite --fly")


def test_a_sentence_about_a_table_is_no_caption() -> None:
    captions = ["Table 3. Costs", "Table A.1 Prices", "TABLE 2", "Tabelle 12: Kosten", "**Table 3.** Costs"]
    captions += ["Table 3 – Costs", "Tableau 2 : Prix", "Table S1. Data", "Table 3a. More"]
    sentences = ["Table 3 shows that the costs rise.", "table 4 was taken by the guests.", "Table I want"]
    sentences += ["Tabelle 3 öffnet sich.", "Table 3-5 people sat there."]
    found = [bool(INTRODUCTION.fullmatch(line)) for line in (*captions, *sentences)]
    assert found == [True] * len(captions) + [False] * len(sentences)


@pytest.mark.parametrize("form", ["Is it {}?", "**Q: Is it {}?**", "**About {}**", "Table 3. {}"])
def test_a_question_a_bold_line_or_a_caption_is_not_parted_from_what_is_below_it(form: str) -> None:
    answers = [("dry", "word " * 9), ("wet", "tea " * 12), ("warm", "kite " * 9)]
    text = "".join(f"{form.format(name)}\n\n{answer}ends.\n\n" for name, answer in answers)
    for chunk in texts(text, cut(text, 18)):
        assert chunk.rstrip().endswith("ends.")


def test_front_matter_is_in_the_chunk_of_the_first_section() -> None:
    text = "---\ntags: [daily]\n---\n<< [[2024-04-04]] >>\n\n# Friday\n\nTea with Mei.\n\n# Notes\n\nNone.\n"
    first, second = texts(text, cut(text, 100))
    assert first.endswith("# Friday\n\nTea with Mei.\n\n")
    assert second == "# Notes\n\nNone.\n"
