"""The numbers of list items as an office program writes them: "2.1", "(b)", "iv." Pure."""

from __future__ import annotations

from ragcommon.text.rules import ITEM

ROMAN = ((100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))
# A larger number is decimal in any form.
MAX_WRITTEN = 300


def written(number: int, form: str) -> str:
    """A number in the form of "a", "A", "i", "I", "01" or, for any other form, "1"."""
    shown = f"{number:02}" if form == "01" else str(number)
    if form and form in "aA" and 0 < number <= MAX_WRITTEN:
        shown = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif form and form in "iI" and 0 < number <= MAX_WRITTEN:
        shown = ""
        for value, sign in ROMAN:
            shown += sign * (number // value)
            number %= value
    return shown.upper() if form.isupper() else shown


def item(marker: str) -> str:
    """The marker of an item as Markdown has it: "(a)" is "- (a)"."""
    number = marker.lstrip()
    return marker if ITEM.match(f"{number} ") else f"{marker[: len(marker) - len(number)]}- {number}"
