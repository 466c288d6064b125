"""Markdown as the chat shows it: rich's, with styled citations and matches, and plain headings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile
from typing import ClassVar

from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, MarkdownElement, TableElement
from rich.markdown import Markdown as RichMarkdown
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSI_LIGHT, ANSISyntaxTheme, Syntax
from rich.table import Table

from ragchat.grounding.citations import MARKER
from ragchat.highlight import Highlight
from ragchat.markdown import markdown_parser

# Of the terminal's palette, blue is hard to read on black, yellow and the bright colours are on white.
_READABLE = {"blue": "magenta", "bright_blue": "magenta", "yellow": "green", "white": "default"}
CODE_THEME = ANSISyntaxTheme(
    {
        token: style + Style(color=_READABLE.get(style.color.name)) if style.color else style
        for token, style in ANSI_LIGHT.items()
    }
)
_OUTSIDE = Highlight("")
_QUOTATIONS = ("blockquote_", "tbody_")


def is_written_plain(console: Console) -> bool:
    """Whether a text is shown as its model wrote it.

    A pipe leads to other programs. A dumb terminal has no bold for headings, and a screen reader would read
    out the lines of a table.
    """
    return not console.is_terminal or console.is_dumb_terminal


class _LeftHeading(Heading):
    """A heading at the left edge, like everything else in a chat."""

    LEVEL_ALIGN: ClassVar = {}


class _TightCode(CodeBlock):
    """Code without blank lines around it: the stream puts one between blocks."""

    highlight = _OUTSIDE

    @classmethod
    def create(cls, markdown: RichMarkdown, token: Token) -> _TightCode:
        block = cls(token.info.partition(" ")[0] or "text", "")
        # Code that is quoted without a model names no language.
        if isinstance(markdown, Markdown) and not token.info:
            block.highlight = markdown.highlight
        return block

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        syntax = Syntax(code, self.lexer_name, theme=CODE_THEME, word_wrap=True, padding=(0, 1))
        for number, line in enumerate(code.split("\n"), start=1):
            for start, end in self.highlight.spans(line):
                syntax.stylize_range("markdown.match", (number, start), (number, end))
        yield syntax


class _TightTable(TableElement):
    """A table without blank lines around it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                table.show_edge = False
            yield table


class Markdown(RichMarkdown):
    """`text` must be sanitized (`ragchat.sanitize`). What `highlight` finds in quotations stands out."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **RichMarkdown.elements,
        "heading_open": _LeftHeading,
        "fence": _TightCode,
        "code_block": _TightCode,
        "table_open": _TightTable,
    }
    inlines = RichMarkdown.inlines | {"citation", "match"}

    def __init__(self, text: str, highlight: Highlight = _OUTSIDE) -> None:
        # Show the address of a link: a model's text must not hide it behind a friendly word.
        super().__init__("", hyperlinks=False)
        self.highlight = highlight
        self.parsed = markdown_parser().parse(text)
        quotations = 0  # open block quotations and tables
        for token in self.parsed:
            quotations += token.nesting if token.type.startswith(_QUOTATIONS) else 0
            if token.children:
                within = highlight if quotations else _OUTSIDE
                token.children = [part for child in token.children for part in _styled(child, within)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Drop the blank line that rich puts before a leading list or quotation."""
        return dropwhile(_is_line_end, super().__rich_console__(console, options))


def _is_line_end(part: object) -> bool:
    return isinstance(part, Segment) and part.text == "\n"


def _styled(token: Token, highlight: Highlight) -> Iterator[Token]:
    """Split a text token so that each citation, and each word that stands out, is in a styled span."""
    if token.type == "image":  # rich shows it before its paragraph, and without its address.
        token = Token("text", "", 0, content=f"{token.content} ({token.attrGet('src') or ''})")
    if token.type != "text":
        yield token
        return
    end = 0
    for marker in MARKER.finditer(token.content):
        yield from _matches(token.content[end : marker.start()], highlight)
        yield from _span("citation", marker.group())
        end = marker.end()
    yield from _matches(token.content[end:], highlight)


def _matches(text: str, highlight: Highlight) -> Iterator[Token]:
    for words, stands_out in highlight.parts(text):
        if stands_out:
            yield from _span("match", words)
        elif words:
            yield Token("text", "", 0, content=words)


def _span(style: str, text: str) -> Iterator[Token]:
    yield Token(f"{style}_open", style, 1)
    yield Token("text", "", 0, content=text)
    yield Token(f"{style}_close", style, -1)
