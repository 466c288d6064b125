"""Hostile texts, names, queries and JSON as strategies for hypothesis, and a limit for the processor time."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st

# Lines that mean something in Markdown, and lines that nearly do.
LINES = [
    "# One",
    "## Two ##",
    "###### Six",
    "####### Seven",
    "#",
    "#no heading",
    "# " + " " * 40 + "far",
    "Title",
    "===",
    "---",
    "=" * 200,
    "```",
    "````",
    "~~~py",
    "`" * 100,
    "| a | b |",
    "|---|---|",
    "|",
    "- item",
    "  * deeper",
    "1. first",
    "999999999) last",
    "> quoted",
    "    code",
    "\tcode",
    "<!-- comment -->",
    "[link]: http://example.org",
    "",
    "   ",
    "\r",
]
# Words and characters that programs get wrong: other scripts, marks, directions, controls, digits.
WORDS = [
    "word",
    "Sentence one. Sentence two! Three?",
    "e" + "\u0301" * 30,  # combining marks
    "שלום",
    "\u202eright-to-left override\u202c",
    "\u2066isolated\u2069",
    "句子。再来！没有空格的文字",
    "กขคงจ",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
    "\U0010ffff\ufffe",
    "\x00",
    "\x01\x1b[31m",
    "\x0b\x0c\x1c\x85\u2028\u2029",  # splitlines() cuts there, text editors do not
    "\u00a0\u2003\u3000\u200b\ufeff",
    "ﬀİıß",  # their length changes with their case
    "½٣۷",
    "x" * 90,
    "a.b.c.d.e",
    '"quoted',
    "“„«「",
    "*" * 20,
    "(((((((((((",
    "\\",
    "%s %n ${HOME} `id`",
    "NULL OR AND NOT NEAR(",
]

# What a long text repeats: single characters, then several.
UNITS = [
    *'#=- \n\t`|>a.。\u0301\x00\u3000字😀*"“\\\r',
    *("# a\n", " \n", "```\n", "| a |\n", "- ", "- a\n", ". ", "a ", "a. ", "[(", "a*"),
]

# Anything but surrogates, which no encoding carries.
characters = st.characters(exclude_categories=["Cs"])
words = st.sampled_from(WORDS) | st.text(characters, max_size=20)
lines = st.sampled_from(LINES) | st.lists(words, max_size=8).map(" ".join)
ends = st.sampled_from(["\n", "\n", "\n", "\n\n", "\r\n", "\n   \n"])
# A document of some lines.
texts = st.lists(st.tuples(lines, ends), max_size=40).map(lambda pairs: "".join(map("".join, pairs)))


@st.composite
def repeated(draw: st.DrawFn, size: int) -> str:
    """A short unit repeated until `size` characters, with another text before and after it."""
    before = draw(st.sampled_from(["", "# a", "Title\n", "```\n", "| a |\n", "- ", '"', "a"]))
    unit = draw(st.sampled_from(UNITS) | st.text(characters, min_size=1, max_size=6))
    after = draw(st.sampled_from(["", "b", "\nb", "\n===\n", "\n---\nb", "\n```\n", " #", '"', "*"]))
    return before + unit * (size // len(unit)) + after


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)
# Numbers at the edge of what a schema, SQLite or a C integer holds.
numbers = st.sampled_from(
    [
        edge + step
        for edge in (0, 100, 10_000, 2**31, 2**32, 2**53, 2**63, 2**64, 10**30)
        for step in (-1, 0, 1)
    ]
) | st.integers(-(2**70), 2**70)


# For tests that fail by taking long: every attempt to shrink the example would take as long.
UNSHRUNK = [Phase.explicit, Phase.reuse, Phase.generate]


def few(examples: int) -> settings:
    """`examples` in a short run, as many as the profile says in a long one: for tests with slow examples."""
    profile = settings.get_profile(settings.get_current_profile_name())
    is_long = profile is settings.get_profile("long")
    return settings(profile, max_examples=profile.max_examples if is_long else examples)


class TookTooLong(AssertionError):
    """The block used more than its processor time."""


@contextmanager
def processor_seconds(limit: float) -> Iterator[None]:
    """Raises TookTooLong when the block has used `limit` seconds of processor time.

    Processor time, so that other programs on the machine do not count. Python's `re` checks for signals, so a
    backtracking expression is stopped as well. For the main thread; on Windows there is no limit.
    """
    if sys.platform == "win32":
        yield
        return

    def stop(_: int, __: FrameType | None) -> None:
        raise TookTooLong(f"It took more than {limit:g} s of the processor.")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
