"""`ragchat query TEXT`: search memory without asking a question."""

from __future__ import annotations

from ragchat.commands.invocation import Invocation
from ragchat.memory.matching import filter_of
from ragchat.offline.answer import EMPTY_MEMORY
from ragchat.sanitize import one_line
from ragchat.settings import RetrievalSettings
from ragchat.uris import passage_location
from ragcommon.text.rules import with_words_replaced

# Hits, unless the user says how many.
SHOWN = 8


async def query(run: Invocation) -> None:
    text = run.words(run.arguments.text)
    top_k = run.arguments.top_k or min(SHOWN, run.settings.table("retrieval", RetrievalSettings).top_k)
    async with run.memory() as memory:
        filter = await filter_of(memory, run.arguments.scope) if run.arguments.scope else None
        found = await memory.query(text, top_k, filter)
    if found.corrections:
        run.console.note(f"Searched for: {with_words_replaced(text, found.corrections)}")
    if found.notice:
        run.console.note(found.notice)
    lines: list[str] = []
    for hit in found.hits:
        heading = f"  {one_line(hit.heading)}" if hit.heading else ""
        lines.append(f"[{hit.rank}] {passage_location(hit)}{heading}  {hit.score:.2f}")
        lines += [*(f"    {line}" for line in hit.full_text.strip("\n").split("\n")), ""]
    notices = [found.notice] if found.notice else []
    document = {"query": text, "hits": found.hits, "notices": notices, "corrections": found.corrections}
    run.console.result(document, *lines, empty=EMPTY_MEMORY if found.empty else "No passage matches.")
