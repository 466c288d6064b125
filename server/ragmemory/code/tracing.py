"""Trace a name: its definitions, its uses, its callers and callees.

The headings of chunks contain all names of functions and classes, so only relevant files are parsed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from anyio import to_thread
from msgspec import Struct

from ragcommon.contract.code import Relation, TraceStep
from ragmemory.code.files import CodeFiles, path_or_uri
from ragmemory.code.references import Occurrence, callees, is_own, occurrences
from ragmemory.code.syntax import Code, Definition, parts_of
from ragmemory.errors import BadArgument
from ragmemory.text.languages import may_call
from ragmemory.types.code import CodeFile, Direction

# Characters parsed per trace, about half a second of work; and seconds after which a trace on a busy machine
# returns what it has.
MAX_WORK = 2_000_000
MAX_SECONDS = 5.0
# Limits of one trace: steps, files with definitions, names to follow, and definitions per call.
MAX_STEPS = 5_000
MAX_DEFINING = 100
MAX_NAMES = 200
MAX_TARGETS = 5
MAX_LINE = 200
# Files parsed per call in a thread.
_BATCH = 25

# A qualified name.
Name = tuple[str, ...]
# The uri and the qualified name of a definition.
Key = tuple[str, Name]


class Located(NamedTuple):
    """A definition with its file."""

    file: CodeFile
    code: Code
    definition: Definition


class _Definitions(NamedTuple):
    """The definitions of an unqualified name."""

    files: Mapping[Key, CodeFile]
    by_owner: Mapping[str, set[Key]]  # those in a class, by the unqualified name of the class


class Use(Struct, frozen=True):
    """A use of a name. `certain`: it refers to one of these definitions; if empty, possibly to any."""

    file: CodeFile
    code: Code
    occurrence: Occurrence
    certain: set[Key] = set()


class Tracer:
    """One trace. It stops after MAX_WORK or MAX_SECONDS, which `notices` reports."""

    def __init__(self, files: CodeFiles, name: str) -> None:
        """Raises BadArgument."""
        self._name = tuple(parts_of(name))
        if not self._name:
            raise BadArgument("name", "must name a function, class or value, such as Store.find")
        self._files = files
        self._until = time.monotonic() + MAX_SECONDS
        self._left = MAX_WORK
        self._seen: set[str] = set()
        self._defined: dict[str, _Definitions] = {}
        self._holding: dict[str, list[tuple[CodeFile, Code]]] = {}
        self._used: dict[str, list[Use]] = {}
        self._is_late = False
        self._has_more = False

    def notices(self) -> list[str]:
        """Why the result may be incomplete."""
        notices = []
        if self._is_late:
            notices.append(f"The answer is not complete: it was ended after {MAX_SECONDS:g} seconds.")
        if self._has_more:
            read = f"only {len(self._seen):,} of the files that hold a name were read."
            notices.append(f"The answer is not complete: {read}")
        return notices

    def _has_ended(self, steps: Sequence[TraceStep] = ()) -> bool:
        self._is_late = self._is_late or time.monotonic() > self._until
        return self._is_late or len(steps) >= MAX_STEPS

    async def _parsed(self, files: Sequence[CodeFile]) -> list[tuple[CodeFile, Code]]:
        """Parse as many of these files as the limits allow."""
        allowed = []
        for file in files:
            if file.uri not in self._seen:
                if self._seen and file.work > self._left:
                    self._has_more = True
                    continue
                self._seen.add(file.uri)
                self._left -= file.work
            allowed.append(file)
        found: list[tuple[CodeFile, Code]] = []
        for start in range(0, len(allowed), _BATCH):
            if self._has_ended():
                break
            found += await self._files.parsed(allowed[start : start + _BATCH])
        return found

    async def _files_holding(self, name: str) -> list[tuple[CodeFile, Code]]:
        if name not in self._holding:
            files: list[CodeFile] = []
            if not self._has_ended():  # Hundreds of names may be left when the time is up.
                files, has_more = await self._files.store.holding(name, MAX_WORK)
                self._has_more = self._has_more or has_more
            self._holding[name] = await self._parsed(files)
        return self._holding[name]

    async def _definitions_of(self, name: str) -> _Definitions:
        """The definitions of an unqualified name.

        Variables and nested functions are in no heading: they are only looked up if nothing else is found.
        """
        if name not in self._defined:
            files: dict[Key, CodeFile] = {}
            for file, heading in [] if self._has_ended() else await self._files.store.defining(name):
                for qualified in heading.split(", "):
                    names = tuple(parts_of(qualified)) if name in qualified else ()
                    if names[-1:] == (name,):
                        files.setdefault((file.uri, names), file)
            if not files:
                for file, code in await self._files_holding(name):
                    for definition in _named(code, name):
                        files.setdefault((file.uri, definition.names), file)
            self._defined[name] = _Definitions(files, _by_owner(files))
        return self._defined[name]

    async def definitions(self) -> list[Located]:
        """The definitions of the name."""
        return await self._matching(self._name)

    async def _matching(self, name: Name) -> list[Located]:
        """The definitions with a qualified name."""
        defined = await self._definitions_of(name[-1])
        files = {uri: file for (uri, names), file in defined.files.items() if _matches(uri, names, name)}
        self._has_more = self._has_more or len(files) > MAX_DEFINING
        return [
            Located(file, code, definition)
            for file, code in await self._parsed(list(files.values())[:MAX_DEFINING])
            for definition in _named(code, name[-1])
            if _matches(file.uri, definition.names, name)
        ]

    async def uses(self, direction: Direction) -> list[TraceStep]:
        """The references, which include calls, and the imports of the name."""
        wanted = {"references": ("call", "reference"), "importers": ("import",)}.get(
            direction, ("reference", "import")
        )
        return [
            _step("importer" if use.occurrence.use == "import" else "reference", 1, use)
            for use in await self._uses(self._name)
            if use.occurrence.use in wanted
        ]

    async def callers(self, depth: int) -> list[TraceStep]:
        """The callers of the name, their callers, and so on; each is followed once."""
        steps: list[TraceStep] = []
        level, followed = [self._name], {self._name}
        for distance in range(1, depth + 1):
            following: list[Name] = []
            for name in level:
                for use in [] if self._has_ended(steps) else await self._uses(name):
                    if use.occurrence.use != "call":
                        continue
                    steps.append(_step("caller", distance, use, ".".join(name)))
                    caller = use.occurrence.inside.names if use.occurrence.inside else ()
                    if caller and caller not in followed and len(followed) < MAX_NAMES:
                        followed.add(caller)
                        following.append(caller)
            level = following
        return steps

    async def _uses(self, name: Name) -> list[Use]:
        """The uses of a name that may refer to definitions with this qualified name."""
        defined = await self._definitions_of(name[-1])
        if defined.files and not any(_matches(*key, name) for key in defined.files):
            return []
        if name[-1] not in self._used:
            files = sorted(await self._files_holding(name[-1]), key=lambda pair: pair[0].uri)
            self._used[name[-1]] = await to_thread.run_sync(_all_uses, files, name[-1], defined.by_owner)
        has_function = not defined.files or not all(
            _is_method(one.definition) for one in await self._matching(name)
        )
        return [use for use in self._used[name[-1]] if _may_refer_to(use, name, has_function=has_function)]

    async def callees(self, found: Sequence[Located], depth: int) -> list[TraceStep]:
        """The callees of the definitions, their callees, and so on; each is followed once."""
        steps: list[TraceStep] = []
        level, followed = list(found), {one.definition.names for one in found}
        for distance in range(1, depth + 1):
            following: list[Located] = []
            for file, code, definition in level:
                if definition.kind == "value" or self._has_ended(steps):
                    continue
                for name, call in await to_thread.run_sync(callees, code, definition):
                    use = Use(file, code, call)
                    targets = await self._targets(use, name)
                    of = f"{call.receiver}.{name}" if call.receiver else name
                    steps.append(_step("callee", distance, use, of, targets))
                    for target in targets:
                        # A constructor call does not run the body of the class.
                        callee = target.definition
                        is_new = callee.kind == "function" and callee.names not in followed
                        if is_new and len(followed) < MAX_NAMES:
                            followed.add(callee.names)
                            following.append(target)
            level = following
        return steps

    async def _targets(self, use: Use, name: str) -> list[Located]:
        """The definitions that a call may refer to, at most MAX_TARGETS."""
        defined = await self._definitions_of(name)
        certain = _certain(use.file, use.code, use.occurrence, name, defined.by_owner)
        is_alone = not use.occurrence.receiver and use.code.language.needs_object
        meant = [
            (uri, names)
            for uri, names in defined.files
            if may_call(use.code.language, uri)
            and ((uri, names) in certain if certain else not is_alone or len(names) == 1)
        ][:MAX_TARGETS]
        files = {uri: defined.files[uri, names] for uri, names in meant}
        return [
            Located(file, code, definition)
            for file, code in await self._parsed(list(files.values()))
            for definition in _named(code, name)
            if definition.kind != "value" and (file.uri, definition.names) in meant
        ]


def _matches(uri: str, names: Name, name: Name) -> bool:
    """Whether a definition matches a qualified name, which may begin with its file or folder."""
    if len(name) <= len(names):
        return names[-len(name) :] == name
    *_, folder, stem = ("", "", *re.split(r"[/\\]", uri.rpartition(".")[0]))
    return name[-len(names) :] == names and name[-len(names) - 1] in (folder, stem)


def _all_uses(
    files: Sequence[tuple[CodeFile, Code]], name: str, by_owner: Mapping[str, set[Key]]
) -> list[Use]:
    return [
        Use(file, code, occurrence, _certain(file, code, occurrence, name, by_owner))
        for file, code in files
        for occurrence in occurrences(code, name)
        if occurrence.use != "definition"
    ]


def _by_owner(definitions: Iterable[Key]) -> dict[str, set[Key]]:
    """Those in a class, by the unqualified name of the class."""
    owners: dict[str, set[Key]] = {}
    for uri, names in definitions:
        if len(names) > 1:
            owners.setdefault(names[-2], set()).add((uri, names))
    return owners


def _certain(
    file: CodeFile, code: Code, occurrence: Occurrence, name: str, by_owner: Mapping[str, set[Key]]
) -> set[Key]:
    """The definitions of which an occurrence certainly refers to one; if empty, possibly to any."""
    receiver = occurrence.receiver
    if receiver and not is_own(receiver):
        return by_owner.get("".join(parts_of(receiver)[-1:]), set())
    here = _named(code, name)
    around = _around(occurrence)
    if receiver:
        here = [definition for definition in here if definition.names[:-1] in around]
    else:
        needs_object = code.language.needs_object
        here = [
            definition
            for definition in here
            if (definition.outer is None or definition.names[:-1] in around)
            and not (needs_object and _is_method(definition))
        ]
    return {(file.uri, definition.names) for definition in here}


def _may_refer_to(use: Use, name: Name, *, has_function: bool) -> bool:
    """Whether a use may refer to a qualified name; `has_function`: not only methods have that name."""
    if use.certain:
        return any(_matches(uri, names, name) for uri, names in use.certain)
    return has_function or bool(use.occurrence.receiver) or not use.code.language.needs_object


def _named(code: Code, name: str) -> list[Definition]:
    """The definitions of a name in a file."""
    return [one for one in code.definitions if one.names[-1] == name]


def _is_method(definition: Definition) -> bool:
    return definition.kind == "function" and definition.outer is not None and definition.outer.kind == "class"


def _around(occurrence: Occurrence) -> set[Name]:
    """The qualified names of all definitions that enclose an occurrence."""
    names = set()
    definition = occurrence.inside
    while definition is not None:
        names.add(definition.names)
        names.add(definition.names[:-1])
        definition = definition.outer
    return names - {()}


def _step(
    relation: Relation, depth: int, use: Use, of: str = "", targets: Sequence[Located] = ()
) -> TraceStep:
    code, inside = use.code, use.occurrence.inside
    line = code.line_at(use.occurrence.start)
    return TraceStep(
        relation=relation,
        depth=depth,
        symbol=code.qualified(inside.names) if inside else "",
        of=of,
        location=f"{path_or_uri(use.file.uri)}:{line}",
        uri=use.file.uri,
        line=line,
        text=code.line(line).strip()[:MAX_LINE],
        targets=[location_of(target) for target in targets],
    )


def location_of(found: Located) -> str:
    """The path and the line of a definition."""
    return f"{path_or_uri(found.file.uri)}:{found.code.line_at(found.definition.begin)}"
