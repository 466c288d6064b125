"""The line at the bottom: model, memory, the share of the history, tokens. Drawing it never waits."""

from __future__ import annotations

from dataclasses import dataclass

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth

from ragchat.sanitize import one_line
from ragcommon.text.rules import counted

# Above this the oldest turns will soon be left out of the prompt.
_NEARLY_FULL = 0.8
_SEPARATOR = " · "


@dataclass
class Status:
    """The values of the toolbar; None: not known yet. `tokens` are those of the session.

    `history` is the share of the model's context that the history takes, in [0, 1]; `left_out` counts the
    turns that no longer fit.
    """

    model: str = ""
    notebook: str = ""
    scope: str = ""  # the documents that are asked; "": all, or those of the notebook
    documents: int | None = None
    chunks: int | None = None
    tokens: int | None = None
    tokens_reported: bool = True  # by the model's server; else they are estimated
    history: float | None = None
    left_out: int = 0
    loading: str = ""  # what is being loaded in the background
    hint: str = ""

    def clear_hint(self, _: object) -> None:
        """The hint disappears when the user types."""
        self.hint = ""


def toolbar(status: Status, columns: int) -> StyleAndTextTuples:
    """The parts that fit into `columns`, the most important first."""
    shown: StyleAndTextTuples = []
    for style, text, *_ in _parts(status):
        separator = _SEPARATOR if shown else " "
        columns -= get_cwidth(separator + text)
        if columns < 0:
            break
        shown += [("", separator), (style, text)]
    return shown


def _parts(status: Status) -> StyleAndTextTuples:
    parts: StyleAndTextTuples = []
    if status.hint:
        parts.append(("class:bottom-toolbar.hint", status.hint))
    parts.append(("", one_line(status.model, 40) or "starting"))
    if status.notebook:
        parts.append(("class:bottom-toolbar.hint", f"notebook {one_line(status.notebook, 30)}"))
    if status.scope:
        parts.append(("class:bottom-toolbar.hint", f"in {one_line(status.scope, 30)}"))
    if status.loading:
        parts.append(("class:bottom-toolbar.hint", status.loading))
    if status.documents is not None and status.chunks is not None:
        parts.append(("", f"{counted(status.documents, 'document')}, {counted(status.chunks, 'chunk')}"))
    if status.history is not None:
        is_full = status.left_out or status.history >= _NEARLY_FULL
        left_out = f", {counted(status.left_out, 'turn')} left out" if status.left_out else ""
        style = "class:bottom-toolbar.full" if is_full else ""
        parts.append((style, f"history {status.history:.0%} of context{left_out}"))
    if status.tokens is not None:
        about = "" if status.tokens_reported else "about "
        parts.append(("", about + counted(status.tokens, "token")))
    return parts
