"""Markdown as the chat shows it: rich's, with styled citations and plain headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import dropwhile
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, MarkdownElement, TableElement
from rich.markdown import Markdown as RichMarkdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.table import Table

CITATION = re.compile(r"(\[\d{1,3}\])")
# Colours of the terminal's own palette, so that code is readable on light and dark backgrounds.
CODE_THEME = "ansi_dark"


def markdown_parser() -> MarkdownIt:
    """A parser of the dialect of answers: CommonMark with tables and strikethrough, HTML shown as text."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # Else "[1]: notes.md" at the end of an answer would vanish as a link definition.
    return parser.disable("reference")


class _LeftHeading(Heading):
    """A heading at the left edge, like everything else in a chat."""

    LEVEL_ALIGN: ClassVar = {}


class _TightCode(CodeBlock):
    """Code without blank lines around it: the stream puts one between blocks."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, padding=(0, 1))


class _TightTable(TableElement):
    """A table without blank lines around it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                table.show_edge = False
            yield table


class Markdown(RichMarkdown):
    """`text` must be sanitized (`ragchat.sanitize`)."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **RichMarkdown.elements,
        "heading_open": _LeftHeading,
        "fence": _TightCode,
        "code_block": _TightCode,
        "table_open": _TightTable,
    }
    inlines = RichMarkdown.inlines | {"citation"}

    def __init__(self, text: str) -> None:
        # Show the address of a link: a model's text must not hide it behind a friendly word.
        super().__init__("", code_theme=CODE_THEME, hyperlinks=False)
        self.parsed = markdown_parser().parse(text)
        for token in self.parsed:
            if token.children:
                token.children = [part for child in token.children for part in _with_citations(child)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Drop the blank line that rich puts before a leading list or quotation."""
        return dropwhile(_is_line_end, super().__rich_console__(console, options))


def _is_line_end(part: object) -> bool:
    return isinstance(part, Segment) and part.text == "\n"


def _with_citations(token: Token) -> Iterator[Token]:
    """Split a text token so that each `[n]` is in a styled span."""
    if token.type != "text":
        yield token
        return
    for part in CITATION.split(token.content):
        if CITATION.fullmatch(part):
            yield Token("citation_open", "citation", 1)
            yield Token("text", "", 0, content=part)
            yield Token("citation_close", "citation", -1)
        elif part:
            yield Token("text", "", 0, content=part)
