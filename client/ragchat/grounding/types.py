"""The citations and the unsupported facts of an answer. Pure."""

from __future__ import annotations

from msgspec import Struct, field

from ragchat.grounding.quotes import quoted_lines
from ragcommon.contract.search import Hit
from ragcommon.text.places import Place, file_name, location, with_cell


class Citation(Struct, frozen=True):
    """A reference of an answer to passage `n`. A passage that is quoted twice has two.

    `quote` is what the answer quotes from it, "" if it quotes nothing. `verified` says whether the passage
    contains the quotation, None if there is none. The lines of the quotation are None if it was not found.
    `location` is the place of the quotation, else of the passage; `places` are those of the passage's lines.
    """

    n: int
    chunk_id: int
    document_id: str
    uri: str
    title: str
    heading: str
    start_line: int
    end_line: int
    quote: str
    verified: bool | None
    quote_start_line: int | None = None
    quote_end_line: int | None = None
    location: str = ""
    places: list[Place] = field(default_factory=list)

    @property
    def cited_lines(self) -> tuple[int, int]:
        """The lines of the quotation, else those of the passage."""
        return self.quote_start_line or self.start_line, self.quote_end_line or self.end_line

    @classmethod
    def of(
        cls, n: int, hit: Hit, quote: str, verified: bool = True, lines: tuple[int, int] | None = None
    ) -> Citation:
        """A citation of passage `n`; without `lines`, the quotation is searched for."""
        if quote and lines is None:
            lines = quoted_lines(quote, hit.text, hit.text_line)
        first, last = lines or (None, None)
        cited, places = lines or (hit.start_line, hit.end_line), hit.places
        if first is not None and first == last:
            row = hit.text.split("\n")[first - hit.text_line : first - hit.text_line + 1]
            places = with_cell(places, first, "".join(row), quote.strip())
        return cls(
            n=n,
            chunk_id=hit.chunk_id,
            document_id=hit.document_id,
            uri=hit.uri,
            title=hit.title,
            heading=hit.heading if first is None else hit.heading_at(first),
            start_line=hit.start_line,
            end_line=hit.end_line,
            quote=quote,
            verified=verified if quote else None,
            quote_start_line=first,
            quote_end_line=last,
            location=location(file_name(hit.uri, hit.title), [cited], places),
            places=places,
        )


class Unsupported(Struct, frozen=True):
    """Numbers, dates, names and identifiers of a sentence that none of the passages it cites contains."""

    facts: list[str]
    passages: list[int]  # by their numbers; []: none is cited, and none contains the facts
