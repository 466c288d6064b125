"""Subtitles (.srt, .vtt): the spoken text in paragraphs; the places are times."""

from __future__ import annotations

import re
from pathlib import Path

from ragcommon.files.decoding import decode
from ragmemory.files.formats.file_text import Damaged, FileText, TextBuilder, one_line

CLOCK = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,]\d{1,9}"
TIMES = re.compile(rf"{CLOCK}[^\S\n]{{1,9}}-->[^\S\n]{{1,9}}{CLOCK}")
# <i>, <v Speaker>, {\an8}
MARKUP = re.compile(r"<(?!v[ .])[^<>]*>|\{\\[^{}]*\}")
SPEAKER = re.compile(r"<v(?:\.[\w.]+)?\s+([^<>\s][^<>]*)>\s*")
# A paragraph ends with the first sentence end after this many characters, or at a pause.
USUAL_CHARACTERS = 300
PAUSE_SECONDS = 4


def read(path: Path, data: bytes) -> FileText:
    """The text of subtitles. Raises NotText."""
    builder = TextBuilder()
    text: list[str] = []
    began = ended = length = 0
    is_found = False
    for block in re.split(r"\n\s*\n", decode(data).text):
        times = TIMES.search(block)
        if times is None:
            continue
        is_found = True
        start, end = (_seconds(*times.group(first, first + 1, first + 2)) for first in (1, 4))
        said = _said(block[times.end() :].partition("\n")[2])
        if not said or (text and said == text[-1]):
            continue
        is_whole = length > USUAL_CHARACTERS and text[-1][-1] in ".!?…"
        if text and (is_whole or start - ended > PAUSE_SECONDS or said.startswith(("- ", "– "))):
            builder.add(" ".join(text), _clock(began))
            text, length = [], 0
        began, ended = (began if text else start), end
        text.append(said)
        length += len(said)
    if not is_found:
        raise Damaged("subtitle")
    builder.add(" ".join(text), _clock(began))
    return builder.build(path.name)


def _said(lines: str) -> str:
    named = SPEAKER.sub(lambda match: f"{match[1]}: ", lines)
    return one_line(MARKUP.sub("", named))


def _seconds(hours: str | None, minutes: str, seconds: str) -> int:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)


def _clock(seconds: int) -> str:
    """ "at 1:02:03"."""
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"at {hours}:{minutes:02}:{seconds:02}"
