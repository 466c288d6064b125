"""Answers about the source code in memory: its symbols, and what calls, uses and imports them.

There is no table of symbols. The full-text index names the files that hold a name, and these are parsed when
they are asked about; parsed files are cached. A change of a file needs no second index that way, and memories
of earlier releases can be asked as well.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from anyio import to_thread

from ragconfig.files.uris import path_of
from ragmemory.code.languages import language_of
from ragmemory.code.references import Occurrence, callees, is_own, occurrences
from ragmemory.code.syntax import Code, Definition, parse, parts_of
from ragmemory.errors import BadArgument
from ragmemory.types import CodeFile, Direction, Relation, Symbol, Trace, TraceStep

if TYPE_CHECKING:
    from ragmemory.stores.sqlite import Store

# Files that one answer reads, and seconds after which it ends with what it has.
MOST_FILES = 400
MOST_SECONDS = 5.0
# Names that one answer follows, and steps that it has.
MOST_NAMES = 200
MOST_STEPS = 5_000
# Parsed files that are kept, in characters of their texts: 10 MB take about 200 MB.
KEPT_CHARACTERS = 4_000_000
LONGEST_LINE = 200


class CodeMemory:
    """The source code in one memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parsed: OrderedDict[tuple[str, bytes], Code | None] = OrderedDict()
        self._kept = 0

    async def symbols(self, name: str) -> tuple[list[Symbol], list[str]]:
        """The definitions of a name, which may be qualified, and their source. Raises BadArgument."""
        asking = _Asking(self, _parts(name))
        found = await asking.definitions(asking.name)
        return [_symbol(file, code, one) for file, code, one in found], asking.notices()

    async def trace(self, name: str, direction: Direction, depth: int) -> Trace:
        """Where a symbol is defined, and what is around it in one direction, or in all.

        `depth`: how many calls are followed. Raises BadArgument.
        """
        asking = _Asking(self, _parts(name))
        found = await asking.definitions(asking.name)
        steps: list[TraceStep] = []
        if direction in ("references", "all", "importers"):
            steps += await asking.uses(direction)
        if direction in ("callers", "all"):
            steps += await asking.callers(depth)
        if direction in ("callees", "all"):
            steps += await asking.callees(found, depth)
        return Trace(
            name=name,
            definitions=[_symbol(file, code, one) for file, code, one in found],
            steps=steps[:MOST_STEPS],
            notices=asking.notices(),
        )

    async def languages(self) -> dict[str, int]:
        """The number of files of each language, the most frequent first."""
        return await self._store.code_counts()

    async def files_holding(self, words: str, limit: int, *, in_headings: bool) -> list[CodeFile]:
        return await self._store.code_holding(words, limit, in_headings=in_headings)

    async def code(self, file: CodeFile) -> Code | None:
        """A parsed file; None if it is not parsed."""
        key = (file.uri, file.digest)
        if key in self._parsed:
            self._parsed.move_to_end(key)
            return self._parsed[key]
        language = language_of(file.uri)
        if language is None:
            return None
        text = await self._store.text(file.document_id)
        code = await to_thread.run_sync(parse, text, language)
        if key in self._parsed:  # Another question has parsed it meanwhile.
            return self._parsed[key]
        self._parsed[key] = code
        self._kept += len(code.data) if code else 0
        while self._kept > KEPT_CHARACTERS and len(self._parsed) > 1:
            _, old = self._parsed.popitem(last=False)
            self._kept -= len(old.data) if old else 0
        return code


Found = tuple[CodeFile, Code, Definition]
"""A definition, and where it is."""


class _Asking:
    """One question about a name: it ends after MOST_FILES and MOST_SECONDS, and says so."""

    def __init__(self, memory: CodeMemory, name: tuple[str, ...]) -> None:
        self.name = name
        self._memory = memory
        self._until = time.monotonic() + MOST_SECONDS
        self._seen: set[str] = set()
        self._is_late = False
        self._has_more = False

    def notices(self) -> list[str]:
        """How the answer may be incomplete."""
        notices = []
        if self._is_late:
            notices.append(f"The answer is not complete: it was ended after {MOST_SECONDS:g} seconds.")
        if self._has_more:
            notices.append(
                f"The answer is not complete: only {MOST_FILES} of the files that hold a name were read."
            )
        return notices

    async def _files(self, words: str, *, in_headings: bool = False) -> list[tuple[CodeFile, Code]]:
        found: list[tuple[CodeFile, Code]] = []
        if self._has_ended():  # A trace may have thousands of names left.
            return found
        for file in await self._memory.files_holding(words, MOST_FILES + 1, in_headings=in_headings):
            if self._has_ended():
                break
            if file.uri not in self._seen and len(self._seen) == MOST_FILES:
                self._has_more = True
                continue
            self._seen.add(file.uri)
            if code := await self._memory.code(file):
                found.append((file, code))
        return found

    def _has_ended(self) -> bool:
        self._is_late = self._is_late or time.monotonic() > self._until
        return self._is_late

    async def definitions(self, name: tuple[str, ...]) -> list[Found]:
        """The definitions that have a qualified name."""
        return [found for found in await self._named(name) if _is_meant(found, name)]

    async def _named(self, name: tuple[str, ...]) -> list[Found]:
        """All definitions of the last part of a name, those with the whole name first.

        Those in no heading are sought only if there are no others.
        """
        searches = [(name[-1], True), (name[-1], False)]
        if len(name) > 1:
            searches.insert(0, (" ".join(name[-2:]), True))
        every: dict[tuple[str, int], Found] = {}
        for words, in_headings in searches:
            if every and not in_headings:
                break
            for file, code in await self._files(words, in_headings=in_headings):
                for found in _definitions(file, code, name[-1]):
                    every.setdefault(_key(found), found)
        return list(every.values())

    async def uses(self, direction: Direction) -> list[TraceStep]:
        """The references, which include calls, and the imports of the name."""
        wanted = {"references": ("call", "reference"), "importers": ("import",)}.get(
            direction, ("reference", "import")
        )
        steps = []
        for file, code, one in await self._occurrences(self.name):
            if one.use in wanted and one.use != "definition":
                relation: Relation = "importer" if one.use == "import" else "reference"
                steps.append(_step(relation, 1, file, code, one))
        return steps

    async def _occurrences(self, name: tuple[str, ...]) -> list[tuple[CodeFile, Code, Occurrence]]:
        """The occurrences of a name that may mean the definition with this qualified name."""
        every = await self._named(name)
        meant = [found for found in every if _is_meant(found, name)]
        if every and not meant:
            return []
        found = []
        for file, code in await self._files(name[-1]):
            for one in await to_thread.run_sync(occurrences, code, name[-1]):
                if one.use == "definition" or _may_mean(one, file, code, meant, every):
                    found.append((file, code, one))
        return found

    async def callers(self, depth: int) -> list[TraceStep]:
        """The definitions that call the name, those that call these, and so on; each is followed once."""
        steps: list[TraceStep] = []
        level, followed = [self.name], {self.name}
        for distance in range(1, depth + 1):
            following: list[tuple[str, ...]] = []
            for name in level:
                for file, code, one in await self._occurrences(name):
                    if one.use != "call":
                        continue
                    steps.append(_step("caller", distance, file, code, one, ".".join(name)))
                    inside = one.inside.names if one.inside else ()
                    if inside and inside not in followed and len(followed) < MOST_NAMES:
                        followed.add(inside)
                        following.append(inside)
            level = following
        return steps

    async def callees(self, found: Sequence[Found], depth: int) -> list[TraceStep]:
        """What the definitions call, what that calls, and so on; each is followed once."""
        steps: list[TraceStep] = []
        level, followed = list(found), {one.names for _, _, one in found}
        for distance in range(1, depth + 1):
            following: list[Found] = []
            for file, code, definition in level:
                if definition.kind == "value":
                    continue
                for callee in await to_thread.run_sync(callees, code, definition):
                    use = Occurrence("call", callee.start, callee.receiver, definition)
                    targets = await self._targets(file, code, use, callee.name)
                    name = ".".join(part for part in (callee.receiver, callee.name) if part)
                    steps.append(_step("callee", distance, file, code, use, name, targets))
                    for target in targets:
                        # The body of a class is not what its constructor calls.
                        is_new = target[2].kind == "function" and target[2].names not in followed
                        if is_new and len(followed) < MOST_NAMES:
                            followed.add(target[2].names)
                            following.append(target)
            level = following
        return steps

    async def _targets(self, file: CodeFile, code: Code, use: Occurrence, name: str) -> list[Found]:
        """The definitions that a call may mean."""
        every = [
            found
            for other, tree in await self._files(name, in_headings=True)
            for found in _definitions(other, tree, name)
            if found[2].kind != "value"
        ]
        return [found for found in every if _may_mean(use, file, code, [found], every)]


def _parts(name: str) -> tuple[str, ...]:
    parts = tuple(parts_of(name))
    if not parts:
        raise BadArgument("name", "must name a function, class or value, such as Store.find")
    return parts


def _is_meant(found: Found, name: tuple[str, ...]) -> bool:
    """Whether a definition has a qualified name, which may begin with the name of its file or folder."""
    file, _, definition = found
    names = definition.names
    if names[-len(name) :] == name:
        return True
    *_, folder, stem = ("", "", *re.split(r"[/\\]", file.uri.rpartition(".")[0]))
    return name[-len(names) :] == names and name[-len(names) - 1] in (folder, stem)


def _may_mean(
    one: Occurrence, file: CodeFile, code: Code, meant: Sequence[Found], every: Sequence[Found]
) -> bool:
    """Whether an occurrence of a name may mean one of some definitions, of all those with that name."""
    if not every:  # It is defined elsewhere, for example in a library.
        return True
    around = _around(one)
    here = _definitions(file, code, every[0][2].names[-1])
    if is_own(one.receiver):
        certain = [found for found in here if found[2].names[:-1] in around]
    elif one.receiver:
        owner = parts_of(one.receiver)[-1:]
        certain = [found for found in every if list(found[2].names[-2:-1]) == owner]
    else:
        certain = [found for found in here if found[2].outer is None or found[2].names[:-1] in around]
        if code.language.needs_object:
            certain = [found for found in certain if not _is_method(found)]
            meant = [found for found in meant if not _is_method(found)]
    keys = {_key(found) for found in meant}
    return bool(keys) and (not certain or any(_key(found) in keys for found in certain))


def _definitions(file: CodeFile, code: Code, name: str) -> list[Found]:
    """The definitions in a file that have a name."""
    return [(file, code, one) for one in code.definitions if one.names[-1] == name]


def _key(found: Found) -> tuple[str, int]:
    return found[0].uri, found[2].begin


def _is_method(found: Found) -> bool:
    definition = found[2]
    return definition.kind == "function" and definition.outer is not None and definition.outer.kind == "class"


def _around(one: Occurrence) -> set[tuple[str, ...]]:
    """The qualified names of all definitions around an occurrence."""
    names = set()
    definition = one.inside
    while definition is not None:
        names.add(definition.names)
        names.add(definition.names[:-1])
        definition = definition.outer
    return names - {()}


def _step(
    relation: Relation,
    depth: int,
    file: CodeFile,
    code: Code,
    one: Occurrence,
    of: str = "",
    targets: Sequence[Found] = (),
) -> TraceStep:
    line = code.line_at(one.start)
    return TraceStep(
        relation=relation,
        depth=depth,
        symbol=code.qualified(one.inside.names) if one.inside else "",
        of=of,
        location=f"{place_of(file.uri)}:{line}",
        uri=file.uri,
        line=line,
        text=code.line(line).strip()[:LONGEST_LINE],
        targets=[f"{place_of(other.uri)}:{text.line_at(one.begin)}" for other, text, one in targets],
    )


def _symbol(file: CodeFile, code: Code, one: Definition) -> Symbol:
    first, last = code.line_at(one.start), code.line_at(max(one.start, one.end - 1))
    line = code.line_at(one.begin)
    return Symbol(
        name=code.qualified(one.names),
        kind=one.kind,
        language=code.language.name,
        location=f"{place_of(file.uri)}:{line}",
        uri=file.uri,
        start_line=first,
        end_line=last,
        text=code.data[one.start : one.end].decode(errors="replace"),
    )


def place_of(uri: str) -> str:
    """The path of a file, else the uri."""
    return str(path_of(uri)) if uri.startswith("file://") else uri
