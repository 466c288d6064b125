"""The source files in a memory, parsed on demand."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from ragcommon.files.uris import path_in
from ragmemory.code.apart import apart, is_harmless
from ragmemory.code.syntax import Code, parse
from ragmemory.text.languages import language_of
from ragmemory.types.code import CodeFile, CodeText

if TYPE_CHECKING:
    from ragmemory.stores.code import CodeStore

# Size of the cache, in characters of source text: 10 MB take about 200 MB.
KEPT_CHARACTERS = 4_000_000

_Key = tuple[str, bytes]


class CodeFiles:
    """Parses files and caches the parsed ones; `store` finds them."""

    def __init__(self, store: CodeStore) -> None:
        self.store = store
        self._parsed: OrderedDict[_Key, Code | None] = OrderedDict()
        self._kept = 0
        self._turn = anyio.Lock()

    async def parsed(self, files: Sequence[CodeFile]) -> list[tuple[CodeFile, Code]]:
        """The files that can be parsed, with their syntax trees."""
        codes = {_key(file): self._parsed[_key(file)] for file in files if _key(file) in self._parsed}
        unknown = [file for file in files if _key(file) not in codes]
        if unknown:
            texts = await self.store.texts([file.document_id for file in unknown])
            there = [file for file in unknown if file.document_id in texts]  # not removed in the meantime
            for file in there:
                key, text = _key(file), texts[file.document_id]
                # A worker cannot return a tree. It tries the texts that chunking did not parse; those that it
                # can parse are parsed again below.
                if text.is_parsed or is_harmless(text.text):
                    continue
                async with self._turn:  # Another trace may have tried meanwhile.
                    if key in self._parsed:
                        codes[key] = self._parsed[key]
                    elif not await apart(_can_parse, file, text):
                        codes[key] = None
                        self._keep({key: None})
            rest = [file for file in there if _key(file) not in codes]
            codes.update(await to_thread.run_sync(_parse_all, rest, texts))
        self._keep(codes)
        return [(file, code) for file in files if (code := codes.get(_key(file)))]

    def _keep(self, codes: dict[_Key, Code | None]) -> None:
        for key, code in codes.items():
            if key not in self._parsed:
                self._kept += len(code.data) if code else 0
            self._parsed[key] = code
            self._parsed.move_to_end(key)
        while self._kept > KEPT_CHARACTERS and len(self._parsed) > 1:
            _, old = self._parsed.popitem(last=False)
            self._kept -= len(old.data) if old else 0


def _key(file: CodeFile) -> _Key:
    return file.uri, file.digest


def _parse_all(files: Sequence[CodeFile], texts: dict[str, CodeText]) -> dict[_Key, Code | None]:
    return {_key(file): _parse(file, texts[file.document_id]) for file in files}


def _parse(file: CodeFile, text: CodeText) -> Code | None:
    language = language_of(file.uri)
    return parse(text.text, language) if language else None


def _can_parse(file: CodeFile, text: CodeText) -> bool:
    return _parse(file, text) is not None


def path_or_uri(uri: str) -> str:
    """The path of a file URI; other URIs unchanged."""
    return str(path_in(uri) or uri)
