"""Runs the steps of a script in one session, in order, and checks their results."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote

import anyio
from msgspec import Struct, field

from ragchat.answer import Answer
from ragchat.conversation import Conversation
from ragchat.errors import RagChatError
from ragchat.formatting import listed
from ragchat.ingest.loading import load_files, load_text
from ragchat.ingest.report import InjectReport
from ragchat.memory.client import MemoryClient
from ragchat.offline.answer import NO_MODEL, notes_of
from ragchat.scripts.script import Expectation, InjectStep, Script, Step, as_list
from ragchat.settings import RetrievalSettings
from ragchat.turn.types import Turn
from ragchat.uris import short_uri
from ragcommon.errors import os_reason

# A separate process, which can be killed: Python does not interrupt a search, and `(a+)+$` may take years.
SEARCH = """
import json, re, sys
pattern, text = json.load(sys.stdin)
print("found" if re.search(pattern, text, re.MULTILINE) else "not found")
"""
SEARCH_SECONDS = 5.0
# Without repetition and choice, a search takes no longer than the text times the pattern.
CANNOT_EXPLODE = re.compile(r"[^*+?{|]*")
EMPHASIS = re.compile(r"(?<![^\W_])[*_`]+|[*_`]+(?![^\W_])")


class StepResult(Struct):
    """The result of a step: the text that is checked, the URIs it cites, and whether it is grounded."""

    text: str
    uris: list[str] = field(default_factory=list)
    grounded: bool | None = None
    errors: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


class StepReport(Struct):
    """One line of the table. `failures` are sentences; the step passed if there are none.

    `notices` are what else was said of an answer, such as that it was cut off.
    """

    step: int  # from 1
    kind: str
    title: str
    passed: bool
    failures: list[str]
    seconds: float
    text: str
    uris: list[str]
    notices: list[str] = []


class ScriptReport(Struct):
    name: str
    steps: list[StepReport] = field(default_factory=list)

    def public(self) -> dict[str, Any]:
        """The shape of `ragchat run --json`."""
        passed = sum(step.passed for step in self.steps)
        failed = len(self.steps) - passed
        return {"script": self.name, "steps": self.steps, "passed": passed, "failed": failed}


async def run_script(
    script: Script,
    folder: Path,
    conversation: Conversation,
    memory: MemoryClient,
    on_step: Callable[[StepReport], None] | None,
    report: ScriptReport,
) -> None:
    """Run every step, even after a failure, and add it to the report when it is done.

    The paths of the script are relative to `folder`.
    """
    for number, step in enumerate(script.step, 1):
        started = time.perf_counter()
        try:
            result = await _run_step(step, folder, conversation, memory)
        except RagChatError as error:
            result = StepResult("", errors=[str(error)])
        seconds = time.perf_counter() - started
        failures = result.errors or await unmet(step.expect, result, seconds)
        done = StepReport(
            step=number,
            kind=step.kind,
            title=step.title,
            passed=not failures,
            failures=failures,
            seconds=seconds,
            text=result.text,
            uris=result.uris,
            notices=result.notices,
        )
        report.steps.append(done)
        if on_step is not None:
            on_step(done)


async def _run_step(step: Step, folder: Path, conversation: Conversation, memory: MemoryClient) -> StepResult:
    if step.inject is not None:
        return await _inject(step.inject, folder, memory)
    if step.ask is not None:
        for question in as_list(step.after):
            await conversation.ask(question)
        turn = await conversation.ask(step.ask)
        uris = [citation.uri for citation in turn.answer.sources]
        return StepResult(text_of(turn.answer), uris, turn.answer.grounded, notices=notices_of(turn))
    return await _query(step.query or "", conversation)


async def _inject(step: InjectStep, folder: Path, memory: MemoryClient) -> StepResult:
    if step.path:
        report = await load_files(memory, [folder / path for path in as_list(step.path)])
    else:
        metadata = {"uri": step.uri} if step.uri else {}
        report = InjectReport([await load_text(memory, step.text, metadata)])
    return StepResult(
        text="\n".join(f"{document.status} {document.uri}" for document in report.documents),
        uris=[document.uri for document in report.documents],
        errors=[document.error for document in report.documents if document.error],
    )


async def _query(text: str, conversation: Conversation) -> StepResult:
    retrieval = conversation.settings.table("retrieval", RetrievalSettings)
    found = await conversation.memory.query(text, retrieval.top_k)
    return StepResult(
        text="\n\n".join(hit.text for hit in found.hits),
        uris=[hit.uri for hit in found.hits],
        grounded=any(hit.score >= retrieval.min_score for hit in found.hits),
    )


def notices_of(turn: Turn) -> list[str]:
    return [notice for notice in turn.trace.notices if notice != NO_MODEL]


def text_of(answer: Answer) -> str:
    """The text of an answer that is checked: without the marks of quotations, which come between words."""
    if not answer.cards:
        return answer.text
    before, after = notes_of(grounded=answer.grounded, missing=answer.missing)
    cards = [f"{one.first_line}\n{one.text}" for one in answer.cards]
    return "\n\n".join(filter(None, [before, *cards, after]))


async def unmet(expect: Expectation, result: StepResult, seconds: float) -> list[str]:
    """A sentence for each expectation that is not met."""
    forms = normalized(result.text), plain(result.text)

    def contains(part: str) -> bool:
        return any(normalized(part) in form for form in forms)

    failures = [f"does not contain {part!r}" for part in as_list(expect.contains) if not contains(part)]
    failures += [f"contains {part!r}" for part in as_list(expect.not_contains) if contains(part)]
    failures += [
        failure for pattern in as_list(expect.matches) if (failure := await _mismatch(pattern, result.text))
    ]
    others = listed([*map(short_uri, dict.fromkeys(result.uris))])
    failures += [
        f"does not cite {cited!r}, {f'only {others}' if others else 'nor anything else'}"
        for cited in as_list(expect.cites)
        if not any(is_cited(cited, uri) for uri in result.uris)
    ]
    if expect.grounded is not None and result.grounded != expect.grounded:
        failures.append("is grounded" if result.grounded else "is not grounded")
    if expect.max_seconds is not None and seconds > expect.max_seconds:
        failures.append(f"took {seconds:.2f} s, more than {expect.max_seconds:g} s")
    return failures


async def _mismatch(pattern: str, text: str) -> str:
    """Why the regular expression does not match anywhere in the text; "" if it does."""
    if CANNOT_EXPLODE.fullmatch(pattern):
        return "" if re.search(pattern, text, re.MULTILINE) else f"does not match {pattern!r}"
    # With -I and -S it imports nothing of the user's, and starts in 20 ms.
    command = [sys.executable, "-I", "-S", "-c", SEARCH]
    try:
        with anyio.fail_after(SEARCH_SECONDS):
            done = await anyio.run_process(command, input=json.dumps([pattern, text]).encode(), check=False)
    except TimeoutError:
        return f"is not matched with {pattern!r} within {SEARCH_SECONDS:g} s"
    except OSError as error:
        return f"cannot be matched with {pattern!r}: {os_reason(error)}"
    if done.returncode:
        return f"cannot be matched with {pattern!r}: the search ended with exit code {done.returncode}"
    return "" if done.stdout.split() == [b"found"] else f"does not match {pattern!r}"


def normalized(text: str) -> str:
    return " ".join(normalize("NFC", text).casefold().split())


def plain(text: str) -> str:
    """Normalized, without Markdown's marks of emphasis and code, which are not within a word."""
    return normalized(EMPHASIS.sub("", text))


def is_cited(wanted: str, uri: str) -> bool:
    """Whether a URI is the one that is wanted: as it is, or with spaces and letters that it encodes."""
    names = {normalize("NFC", name) for name in (uri, unquote(uri))}
    wanted = normalize("NFC", wanted)
    # Only `*` is special.
    glob = wanted.replace("[", "[[]").replace("?", "[?]")
    return any(fnmatchcase(name, glob) if "*" in wanted else wanted in name for name in names)
