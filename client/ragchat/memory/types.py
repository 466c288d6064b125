"""Texts and answers that the chat makes of what servers return."""

from __future__ import annotations

from msgspec import Struct, field

from ragcommon.contract.documents import DocumentInfo
from ragcommon.contract.search import Hit
from ragcommon.text.places import Place


class ToolResult(Struct, frozen=True):
    """The result of a tool that a model called. `hits` are the passages that it found, if it searches.

    `images` are data URLs; `notes` tell the user what a model cannot show or open.
    """

    ok: bool
    text: str
    hits: list[Hit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)


class FilledPrompt(Struct, frozen=True):
    """A prompt with its arguments: the text, and what it is about.

    `documents` are ids; `texts` are not in memory, such as the changes between versions of a document.
    """

    text: str
    documents: list[str]
    texts: list[DocumentText]


class DocumentText(DocumentInfo, frozen=True, kw_only=True):
    """`image` is the data URL of a document that is an image; `text` then names it."""

    text: str
    places: list[Place] = field(default_factory=list)  # in the order of their lines
    image: str = ""

    @classmethod
    def loose(
        cls, uri: str, text: str, *, title: str = "", document_id: str = "", image: str = ""
    ) -> DocumentText:
        """A text that is not a document in memory."""
        size = len(text)
        return cls(
            document_id or uri, uri, title, 0, size, added_at="", updated_at="", text=text, image=image
        )
