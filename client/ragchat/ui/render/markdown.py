"""Markdown as a chat shows it: rich's, with citations marked and plain headings. Loaded when first needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import dropwhile
from typing import ClassVar

from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, MarkdownElement, TableElement
from rich.markdown import Markdown as RichMarkdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.table import Table

from ragchat.ui.render.blocks import markdown_parser

CITATION = re.compile(r"(\[\d{1,3}\])")
# Colours of the terminal's own palette, so that code is readable on light and dark backgrounds.
CODE_THEME = "ansi_dark"


class _LeftHeading(Heading):
    """A heading at the left edge: a centred one tears a chat apart."""

    LEVEL_ALIGN: ClassVar = {}


class _TightCode(CodeBlock):
    """Code without blank lines of its own: the stream sets blocks apart already."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, padding=(0, 1))


class _TightTable(TableElement):
    """A table without blank lines of its own."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                table.show_edge = False
            yield table


class Markdown(RichMarkdown):
    """`text` must be neutral already (`ragchat.sanitize`)."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **RichMarkdown.elements,
        "heading_open": _LeftHeading,
        "fence": _TightCode,
        "code_block": _TightCode,
        "table_open": _TightTable,
    }
    inlines = RichMarkdown.inlines | {"citation"}

    def __init__(self, text: str) -> None:
        # A link shows where it leads: a model's text must not hide an address behind a friendly word.
        super().__init__("", code_theme=CODE_THEME, hyperlinks=False)
        self.parsed = markdown_parser().parse(text)
        for token in self.parsed:
            if token.children:
                token.children = [part for child in token.children for part in _with_citations(child)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Without rich's blank line before a list or a quotation that comes first."""
        return dropwhile(_is_line_end, super().__rich_console__(console, options))


def _is_line_end(part: object) -> bool:
    return isinstance(part, Segment) and part.text == "\n"


def _with_citations(token: Token) -> Iterator[Token]:
    """A text token cut so that each `[n]` stands in a styled span of its own."""
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
