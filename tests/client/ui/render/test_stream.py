"""Answers as they stream in: Markdown on a terminal, plain text on a pipe.

Covers `markdown`.
"""

from __future__ import annotations

import re
from types import SimpleNamespace

import anyio
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ragchat.ui.render.markdown import Markdown
from ragchat.ui.render.stream import MAX_BLOCK, AnswerStream
from tests.support.screens import pipe, terminal

ANSWER = """# Tea

Green tea is brewed at **75 degrees** [1], says the note [2].

- a list item
- another [1]

```python
x = leaves[1]

y = 2
```

| what | degrees |
|------|---------|
| green | 75 [1] |

> quoted

[1]: tea.md

The end.
"""


@pytest.fixture(autouse=True)
def xterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def streamed(pieces: list[str], *, animated: bool = True, columns: int = 60, rows: int = 20) -> str:
    """What stands on the screen after an answer came in pieces, each of them drawn."""
    console, file = terminal(columns, rows)
    stream = AnswerStream(console, animated=animated)
    for piece in pieces:
        stream.take(piece)
        stream.draw()
    stream.finish()
    return file.shown


WHOLE = streamed([ANSWER], animated=False)


async def test_every_kind_of_block_is_shown_one_blank_line_apart() -> None:
    assert WHOLE == (
        "Tea\n\n"
        "Green tea is brewed at 75 degrees [1], says the note [2].\n\n"
        " • a list item\n"
        " • another [1]\n\n"
        " x = leaves[1]\n\n"
        " y = 2\n\n"
        "what   degrees\n"
        "──────────────\n"
        "green  75 [1]\n\n"
        "▌ quoted\n\n"
        "[1]: tea.md\n\n"
        "The end."
    )


@pytest.mark.parametrize("size", [3, 7, 50])
@pytest.mark.parametrize("rows", [5, 40])
async def test_however_it_is_cut_the_same_answer_stands_there_in_the_end(size: int, rows: int) -> None:
    pieces = [ANSWER[start : start + size] for start in range(0, len(ANSWER), size)]
    assert streamed(pieces, rows=rows) == WHOLE


async def test_a_finished_block_is_written_once_for_good() -> None:
    console, file = terminal()
    stream = AnswerStream(console, animated=True)
    stream.take("The first block.\n\nThe second\n")
    stream.draw()
    written = len(file.getvalue())
    stream.take("goes on\n")
    stream.draw()
    assert "first" not in file.getvalue()[written:]
    assert "goes on" in file.getvalue()[written:]
    stream.finish()


async def test_of_a_block_that_grows_only_the_lines_that_differ_are_written() -> None:
    console, file = terminal(columns=30)
    stream = AnswerStream(console, animated=True)
    stream.take("The first line of this block and its second")
    stream.draw()
    written = len(file.getvalue())
    stream.take(" one")
    stream.draw()
    assert file.getvalue()[written:] == "\r\x1b[2K\x1b[1A\x1b[2Kand its second one\n"
    written = len(file.getvalue())
    stream.finish()
    assert file.getvalue()[written:] == ""
    assert file.shown == "The first line of this block\nand its second one"


@pytest.mark.parametrize("more", [" and more", "\n\nA second block."])
async def test_what_the_terminal_echoes_below_an_answer_is_not_left_in_it(more: str) -> None:
    console, file = terminal()
    stream = AnswerStream(console, animated=True)
    stream.take("A block")
    stream.draw()
    file.write("^C")
    stream.take(more)
    stream.finish()
    assert file.shown == f"A block{more}"


@pytest.mark.parametrize("animated", [True, False])
async def test_no_line_is_filled_with_blanks(animated: bool) -> None:
    console, file = terminal()
    stream = AnswerStream(console, animated=animated)
    stream.take(ANSWER)
    stream.finish()
    assert [line for line in file.getvalue().splitlines() if line.endswith(" ")] == []


async def test_code_has_no_colour_that_is_hard_to_read_on_a_light_or_a_dark_background() -> None:
    console, file = terminal()
    code = 'import os\n\n@cached\ndef brew(n: int = 75) -> str:\n    return "green"  # tea'
    console.print(Markdown(f"```python\n{code}\n```"))
    assert set(re.findall(r"\x1b\[(?:[1-9];)?(\d\d)m", file.getvalue())) == {"32", "35", "36", "39"}


async def test_a_long_block_on_a_dumb_terminal_has_no_empty_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    code = "```\n" + "".join(f"line {number} of the code\n" for number in range(MAX_BLOCK // 10)) + "```"
    assert streamed([code], animated=False) == code


async def test_a_dumb_terminal_gets_the_text_as_the_model_wrote_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert streamed([ANSWER[:40], ANSWER[40:]], animated=False, columns=80) == ANSWER.strip()


async def test_an_unfinished_block_longer_than_the_screen_shows_its_end() -> None:
    console, file = terminal(rows=6)
    stream = AnswerStream(console, animated=True)
    stream.take("".join(f"- item {n}\n" for n in range(30)))
    stream.draw()
    assert "item 29" in file.shown
    assert "item 5" not in file.shown
    stream.finish()
    assert file.shown == "\n".join(f" • item {n}" for n in range(30))


async def test_deltas_are_gathered_before_they_are_drawn() -> None:
    console, file = terminal()
    stream = AnswerStream(console, animated=True)
    for word in ("many ", "small ", "words"):
        stream.feed(word)
    assert file.getvalue() == ""
    stream.finish()
    assert file.shown == "many small words"


async def test_a_pause_in_the_middle_of_an_answer_shows_its_seconds_until_the_next_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("ragchat.ui.render.stream.time", SimpleNamespace(monotonic=lambda: now))
    console, file = terminal()
    stream = AnswerStream(console, animated=True)
    stream.feed("The first block.\n\nThe second")
    with anyio.fail_after(60):
        await file.until("The second")
        assert "Thinking" not in file.shown
        now += 5
        await file.until("Thinking 5 s")
    assert file.shown == "The first block.\n\nThe second\nThinking 5 s"
    stream.feed(" goes on")
    stream.draw()
    assert file.shown == "The first block.\n\nThe second goes on"
    now += 5
    stream.finish()
    assert file.shown == "The first block.\n\nThe second goes on"


async def test_without_animation_no_cursor_is_moved() -> None:
    console, file = terminal()
    stream = AnswerStream(console, animated=False)
    for start in range(0, len(ANSWER), 7):
        stream.take(ANSWER[start : start + 7])
        stream.draw()
    stream.finish()
    assert "\x1b[1A" not in file.getvalue()
    assert "\x1b[?25" not in file.getvalue()
    assert file.shown == WHOLE


async def test_a_pipe_gets_the_text_as_it_was_written() -> None:
    console, file = pipe()
    stream = AnswerStream(console, animated=False)
    stream.take(ANSWER)
    stream.finish()
    assert file.getvalue() == ANSWER


async def test_an_escape_sequence_cut_in_two_does_not_get_through() -> None:
    shown = streamed(["before \x1b", "[2Jafter\x07"])
    assert shown == "before ␛[2Jafter␇"


async def test_wide_characters_wrap_within_a_narrow_terminal() -> None:
    shown = streamed(["日本語のとても長い文章です。" * 4], columns=20)
    assert all(len(line) <= 10 for line in shown.splitlines())
    assert "".join(shown.split()) == "日本語のとても長い文章です。" * 4


def styled(text: str) -> str:
    console, file = terminal()
    console.print(Markdown(text))
    return file.getvalue()


def test_citations_stand_out_but_not_in_code() -> None:
    for marker in ("[1]", "[1, 2]", "[1-3]", "[^1]", "【1†L3】"):
        assert f"\x1b[1;36m{marker}\x1b[0m" in styled(f"so it is {marker}, and more")
    assert "\x1b[1;36m[1]" not in styled("```\nx[1]\n```")
    assert "\x1b[1;36m[1]" not in styled("`x[1]`")


def test_an_image_is_shown_in_its_place_with_its_address() -> None:
    shown = streamed(["The plan ![of the house](img/plan.png) is in the hall [1]."])
    assert "The plan of the house (img/plan.png) is in the hall [1]." in " ".join(shown.split())


def test_html_is_shown_and_a_link_says_where_it_leads() -> None:
    assert "<b>bold</b>" in styled("<b>bold</b>")
    assert "http://evil.example" in styled("[good](http://evil.example)")
    assert "\x1b]8" not in styled("[good](http://evil.example)")


LONG = {
    "paragraph": "some *words* of a paragraph [1] and " * 350,
    "word": "x" * 12_500,
    "lines": "a line of a paragraph that goes on and on\n" * 320,
    "list": ("- an item" + " of a list" * 4 + " [1]\n") * 250,
    "code": "```python\n" + ("x = leaves[1]" + " + leaves[2]" * 3 + "\n") * 270 + "```\n",
    "table": "| what | degrees |\n|------|---------|\n"
    + "| green, of spring and summer | 75 or less [1] |\n" * 270,
    "opening": "```" + "x" * 6_500 + "\n" + "y" * 6_500,
}


@pytest.mark.parametrize("kind", LONG)
async def test_a_block_that_grows_and_grows_is_printed_in_parts(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long an answer is, what is parsed and drawn at once is not."""
    longest = 0
    console, file = terminal()
    stream = AnswerStream(console, animated=True)
    parse = MarkdownIt.parse

    def measured(self: MarkdownIt, text: str, *_: object) -> list[Token]:
        nonlocal longest
        longest = max(longest, len(text))
        return parse(self, text)

    monkeypatch.setattr(MarkdownIt, "parse", measured)
    for start in range(0, len(LONG[kind]), 3_000):
        stream.feed(LONG[kind][start : start + 3_000])
    stream.finish()
    assert longest <= MAX_BLOCK + 3_000 < len(LONG[kind])
    assert "```" not in file.shown
    assert "|--" not in file.shown
    if kind == "code":
        assert file.shown.count("x = leaves[1]") == 270


@pytest.mark.parametrize("kind", LONG)
async def test_on_a_pipe_a_long_block_stays_as_the_model_wrote_it(kind: str) -> None:
    console, file = pipe()
    stream = AnswerStream(console, animated=False)
    for start in range(0, len(LONG[kind]), 1_000):
        stream.feed(LONG[kind][start : start + 1_000])
    stream.finish()
    assert file.getvalue() == LONG[kind].rstrip("\n") + "\n"
