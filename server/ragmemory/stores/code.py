"""Find source code by the names in it. Read-only."""

from __future__ import annotations

import re
from collections import Counter

from ragmemory.stores.engine import Condition, StorePart
from ragmemory.text.languages import EXTENSIONS, language_of
from ragmemory.types.code import CodeFile, CodeText

# Maximum number of definitions of one name that are read.
MAX_HEADINGS = 20_000
_ROWS = 500
# Minimum cost of parsing a file, in characters of a large one.
MIN_WORK = 2_000
_FILE = f"document_id, uri, digest, CASE WHEN characters < {MIN_WORK} THEN {MIN_WORK} ELSE characters END"

# Not a web page, whose address may end like that of code: its headings are not those of definitions.
NO_MARKDOWN = """replace(metadata, '"media_type":"text/markdown"', '') = metadata"""
# A document is source code by the extension of its uri: what follows its last dot.
IS_CODE: Condition = (
    f"{NO_MARKDOWN} AND lower(substr(uri, length(rtrim(uri, replace(uri, '.', ''))) + 1))"
    f" IN ({', '.join('?' for _ in EXTENSIONS)})",
    sorted(EXTENSIONS),
)


class CodeStore(StorePart):
    """The source code in one memory."""

    async def defining(self, name: str) -> list[tuple[CodeFile, str]]:
        """The files with the headings that mention a name, in any case and also as a part of another name.

        A heading holds the qualified names of the functions and classes below it, separated by ", ". A
        function inside another one, and a variable, is in no heading.
        """
        rows = await self._engine.read(
            f"SELECT {_FILE}, chunks.heading {self._matches} LIMIT ?",
            [self._engine.dialect.fulltext_query([name], in_headings=True), 0, MAX_HEADINGS],
        )
        return [(CodeFile(*row[:4]), row[4]) for row in rows if language_of(row[1])]

    async def holding(self, name: str, max_work: int) -> tuple[list[CodeFile], bool]:
        """The first files whose texts hold a name, up to `max_work` characters, and whether more exist."""
        word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
        found: dict[str, CodeFile] = {}
        work = 0
        last = 0
        while rows := await self._engine.read(
            f"SELECT {_FILE}, chunks.text, chunk_id {self._matches} LIMIT ?",
            [self._engine.dialect.fulltext_query([name]), last, _ROWS],
        ):
            last = rows[-1][-1]
            for document_id, uri, digest, size, text, _ in rows:
                if document_id in found or not language_of(uri) or not word.search(text):
                    continue
                work += size
                if found and work > max_work:
                    return list(found.values()), True
                found[document_id] = CodeFile(document_id, uri, digest, size)
        return list(found.values()), False

    async def texts(self, document_ids: list[str]) -> dict[str, CodeText]:
        """The texts of some documents, by their ids."""
        parts: dict[str, list[str]] = {}
        parsed = set[str]()
        condition, parameters = self._engine.dialect.among("document_id", document_ids)
        rows = await self._engine.read(
            "SELECT document_id, text, heading FROM documents JOIN chunks ON document = number"
            f" WHERE {condition} ORDER BY chunk_id",
            parameters,
        )
        for document_id, text, heading in rows:
            parts.setdefault(document_id, []).append(text)
            if heading:
                parsed.add(document_id)
        return {one: CodeText("".join(texts), one in parsed) for one, texts in parts.items()}

    async def counts(self) -> dict[str, int]:
        """The number of files of each language, the most frequent first."""
        condition, parameters = IS_CODE
        uris = await self._column(f"SELECT uri FROM documents WHERE hidden = 0 AND {condition}", parameters)
        found = Counter(language.name for uri in uris if (language := language_of(uri)))
        return dict(found.most_common())

    @property
    def _matches(self) -> str:
        """The chunks that match a full text query after an id; without a sort: the first come at once."""
        dialect = self._engine.dialect
        return (
            f"FROM fulltext {dialect.ordered_join} chunks ON chunk_id = fulltext.rowid"
            f" {dialect.ordered_join} documents ON number = document"
            f" WHERE {dialect.fulltext_condition} AND fulltext.rowid > ? AND hidden = 0 AND {NO_MARKDOWN}"
            " ORDER BY fulltext.rowid"
        )
