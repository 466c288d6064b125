"""Subtitles (.srt, .vtt): the spoken text in paragraphs; the places are times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ragcommon.files.decoding import decode
from ragmemory.files.formats.file_text import Damaged, FileText, TextBuilder, one_line

CLOCK = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,]\d{1,9}"
TIMES = re.compile(rf"{CLOCK}[^\S\n]{{1,9}}-->[^\S\n]{{1,9}}{CLOCK}")
# <i>, <v Speaker>, {\an8}
MARKUP = re.compile(r"<(?!v[ .])[^<>]*>|\{\\[^{}]*\}")
SPEAKER = re.compile(r"<v(?:\.[\w.]+)?\s+([^<>\s][^<>]*)>\s*")
# A name with its colon.
NAME = re.compile(r"[^\W\d_][^:!?\n]{0,40}:(?= )")
# A paragraph ends with the first sentence end after this many characters, or at a pause.
USUAL_CHARACTERS = 300
PAUSE_SECONDS = 4
# Captions roll up if more than one cue of this many repeats lines of the one above it, of at most MAX_LINES.
ROLLING = 3
MAX_LINES = 4


class Cue(NamedTuple):
    """What is shown from `start` to `end` (seconds); `speaker` begins `said`, "" if none is named.

    `is_marked`: the speaker is named in the markup.
    """

    start: int
    end: int
    said: str
    speaker: str
    is_marked: bool


def read(path: Path, data: bytes) -> FileText:
    """The text of subtitles. Raises NotText."""
    cues = list(_cues(decode(data).text))
    # Several cues begin with the name of a speaker, but few with other words and a colon.
    counts = Counter(cue.speaker for cue in cues)
    fewest = 1 if all(cue.speaker for cue in cues) else 2
    if not cues:
        raise Damaged("subtitle")
    builder = TextBuilder()
    text: list[str] = []
    began = ended = length = 0
    speaker = ""
    for cue in cues:
        if not cue.said:
            continue
        is_whole = length > USUAL_CHARACTERS and text[-1][-1] in ".!?…"
        is_other = cue.speaker not in ("", speaker) and (cue.is_marked or counts[cue.speaker] >= fewest)
        is_pause = cue.start - ended > PAUSE_SECONDS or cue.said.startswith(("- ", "– "))
        if text and (is_whole or is_other or is_pause):
            builder.add(" ".join(text), _clock(began))
            text, length = [], 0
        is_same = text and cue.speaker == speaker
        text.append(cue.said.removeprefix(cue.speaker).lstrip() if is_same else cue.said)
        began, ended = (began if len(text) > 1 else cue.start), cue.end
        speaker = cue.speaker or speaker
        length += len(cue.said)
    builder.add(" ".join(text), _clock(began))
    return builder.build(path.name)


def _cues(text: str) -> Iterator[Cue]:
    """The cues without lines that are shown once more: all of a cue, or some where captions roll up."""
    blocks = ((block, TIMES.search(block)) for block in re.split(r"\n\s*\n", text))
    shown = [(block, times, _lines(block[times.end() :])) for block, times in blocks if times]
    again = [_repeated(above, lines) for (*_, above), (*_, lines) in pairwise([("", None, []), *shown])]
    rolls_up = len(shown) < ROLLING * sum(map(bool, again))
    for (block, times, lines), count in zip(shown, again, strict=True):
        start, end = (_seconds(*times.group(first, first + 1, first + 2)) for first in (1, 4))
        said = " ".join(lines[count if rolls_up or count == len(lines) else 0 :])
        speaker = NAME.match(said)
        yield Cue(start, end, said, speaker[0] if speaker else "", SPEAKER.search(block) is not None)


def _lines(shown: str) -> list[str]:
    return [*filter(None, map(_said, shown.split("\n")[1:]))]


def _repeated(above: list[str], lines: list[str]) -> int:
    """How many lines of a cue are the last ones of the cue above."""
    counts = (len(lines), *range(MAX_LINES, 0, -1))
    return next((count for count in counts if count > 0 and lines[:count] == above[-count:]), 0)


def _said(line: str) -> str:
    named = SPEAKER.sub(lambda match: f"{match[1]}: ", line)
    return one_line(MARKUP.sub("", named))


def _seconds(hours: str | None, minutes: str, seconds: str) -> int:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)


def _clock(seconds: int) -> str:
    """ "at 1:02:03"."""
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"at {hours}:{minutes:02}:{seconds:02}"
