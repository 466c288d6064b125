"""Find the files of source code whose texts hold a name. Read-only."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ragmemory.code.languages import EXTENSIONS, language_of
from ragmemory.stores.filters import Condition
from ragmemory.stores.fulltext import fulltext_query
from ragmemory.types import CodeFile

if TYPE_CHECKING:
    import aiosqlite

# A document is source code by the extension of its uri.
IS_CODE: Condition = (
    "(" + " OR ".join("lower(uri) GLOB ?" for _ in EXTENSIONS) + ")",
    [f"*.{extension}" for extension in sorted(EXTENSIONS)],
)


async def holding(
    connection: aiosqlite.Connection, name: str, limit: int, *, in_headings: bool
) -> list[CodeFile]:
    """The first files, by uri, that hold a name; with `in_headings` those with a definition of that name.

    A function inside another one, and a variable, is in no heading.
    """
    condition, parameters = IS_CODE
    found = fulltext_query([name], [])
    rows = await connection.execute_fetchall(
        "SELECT DISTINCT document_id, uri, digest FROM fulltext"
        " JOIN chunks ON chunk_id = fulltext.rowid JOIN documents ON number = document"
        f" WHERE fulltext MATCH ? AND hidden = 0 AND {condition} ORDER BY uri LIMIT ?",
        [f"heading : {found}" if in_headings else found, *parameters, limit],
    )
    return [CodeFile(row[0], row[1], row[2]) for row in rows]


async def counts(connection: aiosqlite.Connection) -> dict[str, int]:
    """The number of files of each language, the most frequent first."""
    condition, parameters = IS_CODE
    rows = await connection.execute_fetchall(
        f"SELECT uri FROM documents WHERE hidden = 0 AND {condition}", parameters
    )
    languages: dict[str, int] = {}
    for (uri,) in rows:
        if language := language_of(PurePosixPath(uri).name):
            languages[language.name] = languages.get(language.name, 0) + 1
    return dict(sorted(languages.items(), key=lambda pair: -pair[1]))
