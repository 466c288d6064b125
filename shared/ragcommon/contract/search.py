"""What a search returns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from ragcommon.contract.documents import Metadata
from ragcommon.text.columns import csv_header
from ragcommon.text.places import Place, within
from ragcommon.text.rules import FRONT_MATTER, MARKDOWN_NAMES, is_row

CODE = re.compile(
    r".*\.(?:toml|ini|cfg|conf|env|ya?ml|jsonc?|py|sh|bash|zsh|fish|ps1|bat|[cm]?[jt]s|[jt]sx|c|h|[ch]h|cc|[ch]pp|cs"
    r"|java|kts?|go|rs|rb|php|pl|lua|sql|r|jl|ex|exs|swift|scala|dart|css|s[ac]ss|less|xml|log(?:[.-][\d.-]+)?|proto|graphql|gradle"
    r"|groovy|properties|tf|tfvars|hcl|cnf|service|timer|nix|cmake|mk|j2|jinja2?|vue|svelte|diff|patch|dockerfile)"
    r"|(?:.*/)?(?:(?:Docker|Container|Make|GNUmake|Jenkins|Vagrant|Proc|Rake|Gem|Just)file(?:\.[\w-]+)?|CMakeLists\.txt)",
    re.IGNORECASE,
)
_TESTS = re.compile(
    r".*/(?:tests?|__tests__|spec)/.*|.*/(?:test_[^/]*|[^/]*[._-](?:tests?|spec))\.\w+", re.IGNORECASE
)
# The beginning and the end of a notice that asks nothing of the user.
INDEX_IN_PROGRESS = "The index is being built: ", " passages were searched by some words alone."
RECORDS = re.compile(r"\.[ct]sv$", re.IGNORECASE)


def format_uri(uri: str, metadata: Mapping[str, Any]) -> str:
    """The URI whose suffix or name tells the format of a text; "" for one that was converted from another."""
    # The media type of a plain text, such as a Makefile, says that it is no Markdown.
    is_plain = metadata.get("media_type") == "text/plain" and not uri.lower().endswith((".gz", ".bz2", ".xz"))
    return uri if is_plain or "media_type" not in metadata else ""


def is_code(uri: str, metadata: Mapping[str, Any]) -> bool:
    """Whether a document is code, settings or a log, by the name of its file."""
    return CODE.fullmatch(format_uri(uri, metadata)) is not None


class Hit(Struct, frozen=True):
    """One found chunk. `score` is in [0, 1] and comparable between queries."""

    rank: int  # from 1
    score: float
    chunk_id: int
    document_id: str
    uri: str
    title: str
    heading: str
    start_line: int  # 1-based
    end_line: int  # inclusive
    text: str
    metadata: Metadata
    context: str = ""  # the header of the table that `text` continues; "" if it needs none
    location: str = ""  # such as "thesis.pdf p. 12" or "notes.md:3–5"
    places: list[Place] = []  # those of its lines
    surroundings: str = ""  # the neighbours of a turn in a conversation, by which it was found as well
    written_by: str | None = None  # the program that stored the text, as the journal names it
    headings: list[Place] = []  # those inside it: first lines, and paths below `heading`; of code its symbols
    rerank_score: float | UnsetType = UNSET  # in [0, 1]; by it hits are ordered, if there is a reranker

    @property
    def text_line(self) -> int:
        """The line with which the text begins; `start_line` is that of its first words."""
        blank = self.text[: len(self.text) - len(self.text.lstrip())]
        return self.start_line - blank.count("\n")

    def heading_at(self, line: int) -> str:
        """The path of headings above a line of its document; of code the symbol whose definition has it."""
        inner = [name for _, name in within(self.headings, line, line)]
        symbols = {"", *self.heading.split(", ")}
        is_symbol = bool(inner) and symbols.issuperset(name for _, name in self.headings)
        return " > ".join(filter(None, inner if is_symbol else [self.heading, *inner]))

    @property
    def format_uri(self) -> str:
        """The URI whose suffix names the format of the text: see `format_uri`."""
        return format_uri(self.uri, self.metadata)

    @property
    def is_code(self) -> bool:
        """Whether it is code, settings or a log: see the function."""
        return is_code(self.uri, self.metadata)

    @property
    def is_test(self) -> bool:
        """Whether it is code that tests other code, by its name or folder."""
        return self.is_code and _TESTS.fullmatch(self.format_uri) is not None

    @property
    def is_csv(self) -> bool:
        return RECORDS.search(self.format_uri) is not None

    @property
    def columns(self) -> tuple[int, int]:
        """The span in `full_text` of the row that names the columns of a CSV file; empty without it."""
        has_header = self.is_csv and (self.context or self.text_line == 1)
        return csv_header(self.full_text) if has_header else (0, 0)

    @property
    def front_matter(self) -> int:
        """The length of its document's front matter, if the text begins with that."""
        is_begin = self.start_line == 1 and self.format_uri.lower().endswith(MARKDOWN_NAMES)
        found = FRONT_MATTER.match(self.text) if is_begin else None
        return found.end() if found else 0

    @property
    def is_table(self) -> bool:
        """Whether most of its lines are rows of a table."""
        lines = [line for line in self.full_text.splitlines() if line.strip()]
        return self.is_csv or 2 * sum(map(is_row, lines)) > len(lines)

    @property
    def full_text(self) -> str:
        """The text with what it needs to be understood."""
        return self.context + self.text


class QueryResult(Struct, frozen=True):
    """The outcome of one `query`."""

    hits: list[Hit]  # best first
    empty: bool  # the memory holds no documents
    notice: str = ""  # how this search differs from an ordinary one, such as "Searched by words alone. …"
    corrections: dict[str, str] = {}  # of misspelt words of the query, which was searched for corrected
    missing: list[str] = []  # the content words of the query that no hit contains
    weights: dict[str, float] = {}  # of its content words, in (0, 1], by rarity: 1 is in no chunk at all


class Comparison(Struct, frozen=True):
    similarities: list[float]  # in [-1, 1], in the order of the texts
    # For each text and word, the cosine of its nearest word; absent if the model has no vectors of words.
    matches: list[list[float]] | UnsetType = UNSET
