"""Subtitles: what is said, and when."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.subtitles import read


def test_captions_are_joined_until_a_pause() -> None:
    found = read(
        Path("a.srt"),
        b"1\r\n00:00:01,000 --> 00:00:03,000\r\nTea is\r\n<i>made</i> from\r\n\r\n"
        b"2\r\n00:00:03,000 --> 00:00:05,000\r\n{\\an8}leaves.\r\n\r\n"
        b"3\r\n01:00:15,000 --> 01:00:17,000\r\nThe end.\r\n",
    )
    assert found.text == "Tea is made from leaves.\n\nThe end.\n"
    assert found.places == [(1, "at 0:00:01"), (3, "at 1:00:15")]


def test_speakers_are_named() -> None:
    found = read(
        Path("a.vtt"), b"WEBVTT\n\nNOTE made by hand\n\n00:01.000 --> 00:03.000\n<v Ada>Hello.</v>\n"
    )
    assert found.text == "Ada: Hello.\n"


@pytest.mark.parametrize("form", ["<v Ada Lee>{}</v>", "Ada Lee: {}"])
def test_a_speaker_is_named_once_a_paragraph_and_another_begins_a_new_one(form: str) -> None:
    said = [
        form.format("We meet"),
        form.format("on Monday."),
        "Ben: At ten?",
        "Ben: Or later.",
        "Note: it rains.",
        "Sadly.",
    ]
    cues = (f"00:0{n}.000 --> 00:0{n + 1}.000\n{one}\n" for n, one in enumerate(said))
    found = read(Path("a.vtt"), "\n".join(["WEBVTT\n", *cues]).encode())
    assert found.text == "Ada Lee: We meet on Monday.\n\nBen: At ten? Or later. Note: it rains. Sadly.\n"
    assert [place for _, place in found.places] == ["at 0:00:00", "at 0:00:02"]


@pytest.mark.parametrize(
    ("first", "second", "third", "text"),
    [
        (
            "<v Ada>At ten?</v>",
            "<v Ben>No.</v>",
            "<v Ada>At two.</v>",
            "Ada: At ten?\n\nBen: No.\n\nAda: At two.\n",
        ),
        ("Ada: At ten?", "Ben: No.", "Ada: At two.", "Ada: At ten?\n\nBen: No.\n\nAda: At two.\n"),
        (
            "Ada: At ten?",
            "Ben: No.\n\n00:03.000 --> 00:04.000\nNever.",
            "Ada: At two.",
            "Ada: At ten? Ben: No. Never.\n\nAda: At two.\n",
        ),
    ],
    ids=["in the markup", "in each cue", "in some cues"],
)
def test_a_speaker_who_speaks_once_is_not_given_the_words_of_the_next_one(
    first: str, second: str, third: str, text: str
) -> None:
    said = [(1, first), (2, second), (5, third)]
    cues = (f"00:0{n}.000 --> 00:0{n + 1}.000\n{one}\n" for n, one in said)
    assert read(Path("a.vtt"), "\n".join(["WEBVTT\n", *cues]).encode()).text == text


def test_captions_that_roll_up_are_read_once() -> None:
    # As yt-dlp saves the captions that YouTube makes.
    shown = [" \nsolder<00:01.200><c> it</c>", "solder it\n ", "solder it\nin<00:03.200><c> two</c>"]
    shown += ["in two\n ", "in two\nseconds", "seconds\n ", "seconds\nseconds"]
    cues = (f"00:0{n}.000 --> 00:0{n + 1}.000 align:start\n{one}\n" for n, one in enumerate(shown))
    found = read(Path("a.vtt"), "\n".join(["WEBVTT\n", *cues]).encode())
    assert found.text == "solder it in two seconds seconds\n"


def test_what_is_said_twice_is_read_twice_where_captions_do_not_roll_up() -> None:
    shown = [
        "Do you agree?\nYes.",
        "Yes.\nI do.",
        "I do.\nSo do I.",
        "Good.",
        "Now then.",
        "Let us go.",
        "On.",
    ]
    cues = (f"{n}\n00:00:0{n},000 --> 00:00:0{n + 1},000\n{one}\n" for n, one in enumerate(shown))
    found = read(Path("a.srt"), "\n".join(cues).encode())
    assert found.text == "Do you agree? Yes. Yes. I do. I do. So do I. Good. Now then. Let us go. On.\n"


def test_a_file_without_times_is_refused() -> None:
    with pytest.raises(NotText, match="is a damaged subtitle file"):
        read(Path("a.srt"), b"only text")


CUE = "1\n00:00:01,000 --> 00:00:02,000\n"


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{n}\n00:00:01,000 --> 00:00:02,000\nhello {n} you\n\n" for n in range(30_000)),
        f"{'1' * 50_000}\n\n{CUE}x",
        CUE + "<" * 100_000,
        CUE + "{\\" * 100_000,
        CUE + "<v" + " " * 100_000 + "x",
    ],
    ids=["cues", "digits before", "tags", "braces", "speaker"],
)
def test_the_time_is_in_proportion_to_the_size_of_the_file(text: str) -> None:
    spent = os.times().user
    assert read(Path("a.srt"), text.encode()).text
    assert os.times().user - spent < 2
