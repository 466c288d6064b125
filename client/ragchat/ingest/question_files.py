"""The texts and files that a question is about: of `ragchat ask -f`, of stdin, and of `@file` in the chat."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from ragchat.errors import NothingToAskAbout
from ragchat.ingest.loading import load_files, load_text
from ragchat.ingest.report import InjectReport
from ragchat.memory.client import MemoryClient
from ragchat.memory.types import DocumentText
from ragchat.servers.memory.server import open_memory
from ragconfig.settings import Settings

STDIN_URI = "stdin"
ORIGIN = "a memory for one question"


async def load_question_files(
    memory: MemoryClient, files: Sequence[str | Path], text: str = ""
) -> InjectReport:
    """Load them into a memory. Raises NothingToAskAbout, and what loading raises."""
    report = InjectReport()
    if text:
        report.texts.append(await load_text(memory, text, {"uri": STDIN_URI}))
    if files:
        await load_files(memory, files, report=report)
    for document in report.documents:
        if document.error:
            raise NothingToAskAbout(document.error)
    if report.skipped and not report.documents:
        raise NothingToAskAbout(f"{report.skipped[0].path} {report.skipped[0].reason}.")
    return report


async def read_question_files(
    files: Sequence[Path], settings: Settings
) -> tuple[list[DocumentText], InjectReport]:
    """The texts of files, which are not stored, in their order. Raises what `load_question_files` does."""
    with tempfile.TemporaryDirectory(prefix="ragchat-read-", ignore_cleanup_errors=True) as folder:
        own = settings.with_memory(Path(folder, "memory.db"), ORIGIN).with_table("memory", read_only=False)
        # The texts are not searched: they are not worth a request to an embedder elsewhere.
        async with open_memory(own.with_table("embedder", kind="local")) as memory:
            report = await load_question_files(memory, files)
            found = [await memory.show(one.document_id) for one in report.documents if one.document_id]
            return found, report
