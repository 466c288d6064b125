"""Named styles in the colours of the terminal's palette, which suit light and dark themes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prompt_toolkit.styles import BaseStyle

# For what rich prints.
OUTPUT = {
    "citation": "bold cyan",
    "markdown.citation": "bold cyan",
    "markdown.match": "bold",
    "match": "underline",
    "best": "bold",
    "header": "none",  # of a table: looks like the rest, and is kept above the best row
    "source": "default",
    "score": "dim",
    "heading": "dim",
    "notice": "dim",
    "warning": "yellow",
    "error": "bold red",
    "hint": "dim",
    "done": "green",
    "name": "bold",
    "markdown.code": "cyan",
    "markdown.h1": "bold",
    "markdown.h2": "bold",
}

# For what prompt_toolkit draws.
PROMPT = {
    "prompt": "ansicyan bold",
    "placeholder": "ansibrightblack",
    "bottom-toolbar": "noreverse ansibrightblack",
    "bottom-toolbar.hint": "bold",
    "bottom-toolbar.full": "ansiyellow",
}


def prompt_style(styled: bool) -> BaseStyle:
    from prompt_toolkit.styles import Style

    return Style.from_dict(PROMPT if styled else {"bottom-toolbar": "noreverse"})
