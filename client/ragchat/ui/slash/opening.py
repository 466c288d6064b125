"""/open: shows a citation in its file, or in the text that was read from the file."""

from __future__ import annotations

import os
import re
import tempfile
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ragchat.errors import CommandNotPossible, RagChatError, UnexpectedArgument
from ragchat.memory.opening import IMAGES, is_converted, line_in, line_in_file, original_of
from ragchat.sanitize import one_line, sanitize
from ragchat.uris import passage_location, short_uri
from ragcommon.text.places import page_in

if TYPE_CHECKING:
    from ragchat.grounding.types import Citation
    from ragchat.turn.types import Turn
    from ragchat.ui.context import ChatContext
    from ragcommon.contract.search import Hit

ORIGINAL = "--original"
# Files that are safe to hand to a viewer: the system would execute others, and any program can add to memory.
_VIEWED = IMAGES | {
    *(".pdf", ".docx", ".docm", ".pptx", ".pptm", ".xlsx", ".xlsm", ".xls", ".odt", ".ods", ".odp"),
    *(".rtf", ".epub", ".eml", ".emlx"),
    *(".html", ".htm", ".xhtml", ".mhtml", ".mht"),
}
_UNSAFE_IN_NAMES = re.compile(r"[^\w .,()#¶-]+")
_NAME_CHARACTERS = 80


class CitedPlace(NamedTuple):
    """The cited place: its name, the passage, and the text around it as far as the turn has it."""

    name: str
    citation: Citation
    hit: Hit | None
    line: int


async def open_source(context: ChatContext, argument: str) -> None:
    """Open citation N, by default the first: text and code in the editor, of other documents their text.

    A web page is opened in the browser. With `--original`, the file itself, with the system's viewer.
    """
    words = argument.split()
    place = _cited(context, " ".join(word for word in words if word != ORIGINAL))
    if place.citation.uri.startswith(("http://", "https://")):
        is_open = await _open_page(context, place.citation.uri)
    else:
        is_open = await _open_file(context, place, wants_original=ORIGINAL in words)
    if not is_open:
        await _show_text(context, place)


async def _open_page(context: ChatContext, uri: str) -> bool:
    from anyio import to_thread

    is_open = await to_thread.run_sync(webbrowser.open, uri)
    short = short_uri(uri)
    context.screen.note(f"Opening {short} in the browser." if is_open else f"No browser opens {short} here.")
    return is_open


async def _open_file(context: ChatContext, place: CitedPlace, *, wants_original: bool) -> bool:
    """Open the file in a viewer or the editor; False if only its text in memory can be shown."""
    from anyio import to_thread

    from ragchat.ui import viewer

    citation, hit = place.citation, place.hit
    short = short_uri(citation.uri)
    original = await original_of(context.memory, citation.uri)
    if original is None:
        if wants_original:
            raise CommandNotPossible("open", f"{one_line(citation.uri)} is not a file on this machine")
        return False
    path, absence = original
    if absence:
        if wants_original:
            raise CommandNotPossible("open", f"{short} {absence}")
        context.screen.note(f"{short} {absence}.")
        return False
    is_text = not is_converted(hit, path)
    if wants_original and original.suffix not in _VIEWED and not is_text:
        raise CommandNotPossible("open", f"{short} is not of a kind that is opened in a viewer")
    if original.suffix in IMAGES or (original.suffix in _VIEWED and wants_original):
        page = page_in(place.name.removeprefix(short)) if original.suffix == ".pdf" else None
        await to_thread.run_sync(viewer.show, path, page)
        return True
    if not is_text:
        return False
    if line := await to_thread.run_sync(line_in_file, path, citation, hit):
        await _edit(context, path, line)
        return True
    context.screen.note(f"{short} does not hold the passage as memory has it.")
    return False


def _cited(context: ChatContext, number: str) -> CitedPlace:
    """Raises CommandNotPossible, UnexpectedArgument."""

    turn = context.last_turn
    cited = sorted(turn.answer.sources, key=lambda citation: citation.n)
    wanted = number.strip("[]")
    citation = next((found for found in cited if not wanted or str(found.n) == wanted), None)
    if citation is None:
        if (option := number.rpartition(" ")[2]).startswith("-"):
            raise UnexpectedArgument("open", f"no option {option}; {ORIGINAL} opens the file itself")
        missing = f"the last answer has no citation {number}" if number else "the last answer cites nothing"
        raise CommandNotPossible("open", missing)
    passage = _passage(turn, citation)
    return CitedPlace(passage_location(citation), citation, passage, citation.cited_lines[0])


def _passage(turn: Turn, citation: Citation) -> Hit | None:
    hits = (candidate.hit for candidate in turn.answer.candidates)
    return next((hit for hit in hits if hit.chunk_id == citation.chunk_id), None)


async def _edit(context: ChatContext, path: Path, line: int) -> None:
    """Show a file at a line, in the editor or else in the pager."""

    from ragchat.ui import editor

    setting = context.conversation.settings.tables["open"]["editor"]
    command = editor.editor_command(path, line, setting, os.environ)
    command = command or editor.pager_command(path, line, os.environ)
    if not command.has_line:
        context.screen.note(
            f"The place is line {line}. How {command.words[0]} takes a line is not known here: "
            'set open.editor to a form such as "EDITOR {path}:{line}".'
        )
    await editor.run(command.words)


async def _show_text(context: ChatContext, place: CitedPlace) -> None:
    """Show the text of a document at the place, in the pager, from a private file that is then removed."""

    from anyio import to_thread

    from ragchat.ui import editor

    text, line = await _text(context, place)
    with tempfile.TemporaryDirectory(prefix="ragchat-open-", ignore_cleanup_errors=True) as folder:
        # Pagers show the name of the file, wherever they are in it.
        name = _UNSAFE_IN_NAMES.sub("_", place.name.rpartition("/")[2])[:_NAME_CHARACTERS].strip(" .")
        file = Path(folder, f"{name}.txt")
        header = f"{place.name}\n\n"
        await to_thread.run_sync(file.write_bytes, (header + sanitize(text)).encode())
        command = editor.pager_command(file, line + header.count("\n"), os.environ)
        await editor.run(command.words)


async def _text(context: ChatContext, place: CitedPlace) -> tuple[str, int]:
    """The text in memory and its cited line; if it is no longer there, the passage that the turn has kept.

    Raises CommandNotPossible.
    """
    with suppress(RagChatError):
        text = (await context.memory.show(place.citation.document_id)).text
        if line := line_in(text, place.citation, place.hit):
            return text, line
    if place.hit is None:
        raise CommandNotPossible("open", f"memory no longer has {place.name}")
    context.screen.note("Memory does not have this passage now: this is what the answer cites.")
    return place.hit.text.lstrip("\n"), place.line - place.citation.start_line + 1
