"""Results of servers as the chat uses them."""

from __future__ import annotations

from msgspec import Struct, field

from ragcommon.contract.documents import DocumentInfo
from ragcommon.contract.search import Hit
from ragcommon.text.places import Place


class ToolResult(Struct, frozen=True):
    """The result of a tool that a model called. `hits` are the passages found by a search tool.

    `images` are data URLs; `notes` tell the user about content that is not text.
    """

    ok: bool
    text: str
    hits: list[Hit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)


class FilledPrompt(Struct, frozen=True):
    """A prompt with its arguments filled in.

    `documents` are ids of attached documents; `texts` are attachments that are not in memory, such as diffs.
    """

    text: str
    documents: list[str]
    texts: list[DocumentText]


class DocumentText(DocumentInfo, frozen=True, kw_only=True):
    """`image` is the data URL of an image; `text` is then its name."""

    text: str
    places: list[Place] = field(default_factory=list)  # in the order of their lines
    image: str = ""

    @classmethod
    def loose(cls, uri: str, text: str, *, document_id: str = "", image: str = "") -> DocumentText:
        """A text that is not stored in memory."""
        id, size = document_id or uri, len(text)
        return cls(id, uri, "", 0, size, added_at="", updated_at="", text=text, image=image)
