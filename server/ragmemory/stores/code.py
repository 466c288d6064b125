"""Find source code by the names in it. Read-only."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import msgspec

from ragmemory.stores.file import StorePart
from ragmemory.stores.filters import Condition
from ragmemory.stores.fulltext import fulltext_query
from ragmemory.text.languages import EXTENSIONS, language_of
from ragmemory.types.code import CodeFile

# Maximum number of definitions of one name that are read.
MAX_HEADINGS = 20_000
_ROWS = 500
# Minimum cost of parsing a file, in characters of a large one.
MIN_WORK = 2_000
_FILE = f"document_id, uri, digest, max(characters, {MIN_WORK})"

# A document is source code by the extension of its uri: what follows its last dot.
IS_CODE: Condition = (
    "lower(substr(uri, length(rtrim(uri, replace(uri, '.', ''))) + 1))"
    f" IN ({', '.join('?' for _ in EXTENSIONS)})",
    sorted(EXTENSIONS),
)
# Without a sort, so that the first rows come at once.
_MATCHES = (
    " FROM fulltext CROSS JOIN chunks ON chunk_id = fulltext.rowid"
    " CROSS JOIN documents ON number = document"
    " WHERE fulltext MATCH ? AND fulltext.rowid > ? AND hidden = 0 ORDER BY fulltext.rowid"
)


class CodeStore(StorePart):
    """The source code in one memory."""

    async def defining(self, name: str) -> list[tuple[CodeFile, str]]:
        """The files with the headings that mention a name, in any case and also as a part of another name.

        A heading holds the qualified names of the functions and classes below it, separated by ", ". A
        function inside another one, and a variable, is in no heading.
        """
        rows = await self._file.read(
            f"SELECT {_FILE}, chunks.heading {_MATCHES} LIMIT ?",
            [f"heading : {fulltext_query([name], [])}", 0, MAX_HEADINGS],
        )
        return [(CodeFile(*row[:4]), row[4]) for row in rows if language_of(row[1])]

    async def holding(self, name: str, max_work: int) -> tuple[list[CodeFile], bool]:
        """The first files whose texts hold a name, up to `max_work` characters, and whether more exist."""
        word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
        found: dict[str, CodeFile] = {}
        work = 0
        last = 0
        while rows := await self._file.read(
            f"SELECT {_FILE}, chunks.text, chunk_id {_MATCHES} LIMIT ?",
            [fulltext_query([name], []), last, _ROWS],
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

    async def texts(self, document_ids: list[str]) -> dict[str, str]:
        """The texts of some documents, by their ids."""
        parts: dict[str, list[str]] = {}
        rows = await self._file.read(
            "SELECT document_id, text FROM documents JOIN chunks ON document = number"
            " WHERE document_id IN (SELECT value FROM json_each(?)) ORDER BY chunk_id",
            [msgspec.json.encode(document_ids).decode()],
        )
        for document_id, text in rows:
            parts.setdefault(document_id, []).append(text)
        return {document_id: "".join(one) for document_id, one in parts.items()}

    async def counts(self) -> dict[str, int]:
        """The number of files of each language, the most frequent first."""
        condition, parameters = IS_CODE
        rows = await self._file.read(
            f"SELECT uri FROM documents WHERE hidden = 0 AND {condition}", parameters
        )
        languages: dict[str, int] = {}
        for (uri,) in rows:
            if language := language_of(PurePosixPath(uri).name):
                languages[language.name] = languages.get(language.name, 0) + 1
        return dict(sorted(languages.items(), key=lambda pair: -pair[1]))
