"""Sheets of a workbook as paragraphs and tables; the places are rows, or cells alone in their row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

from msgspec import Struct

from ragcommon.text.places import cell_label, row_label
from ragmemory.files.formats.file_text import MAX_CHARACTERS, MAX_REPEATED, TextBuilder, TooMuchText, one_line

MAX_ROWS = 100_000
MAX_COLUMNS = 200
# Number formats that are followed: digits, decimals, a percent sign, and what is before and after, such as a
# currency. Thousands are not grouped, which each language does otherwise. Larger numbers are shown without.
LITERAL = r'(?:"[^"]*"|\\.|\[\$[^\]]*\]|[\s€$£¥])'
NUMBER_FORMAT = re.compile(
    rf"({LITERAL}*)(?:#+(?:(,)#*)?)?(0{{1,20}})(?:\.(0{{1,9}}))?({LITERAL}*(?:(%){LITERAL}*)?)"
)
# A literal with the text that it shows: that in quotation marks, an escaped character, a currency.
SHOWN = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]')
# Colours, and spaces as wide as a character or the cell. After a semicolon is the format of negative numbers.
LAYOUT = re.compile(r'("[^"]*"|\\.)|\[(?!\$)[a-z]+ ?\d*\]|[_*].|;.*', re.IGNORECASE)
# Excel allows no longer format.
MAX_FORMAT = 255
MAX_FORMATTED = 1e15


class Sheet(Struct):
    """`rows` that are present: their numbers, from 1, and the shown values by column, from 0.

    `spans` are the cells that span rows: by row and column, the last row.
    """

    name: str
    is_hidden: bool
    rows: Iterable[tuple[int, dict[int, str]]]
    spans: Mapping[tuple[int, int], int] = {}


def add_sheets(sheets: Iterable[Sheet], builder: TextBuilder) -> list[str]:
    """Add the sheets of one workbook; returns notes. Raises TooMuchText."""
    notes: list[str] = []
    left, characters = MAX_ROWS, 0
    for sheet in sheets:
        name = one_line(sheet.name)
        heading = f"# {name}"
        if sheet.is_hidden:
            heading += " (hidden)"
            notes.append(f"has the hidden sheet {name}")
        rows: list[list[str]] = []
        places: list[str] = []
        previous = widest = 0
        above: dict[int, tuple[str, int]] = {}  # by column: the text of a cell that spans rows, and the last
        for number, values in sheet.rows:
            texts = {at: text for at, text in values.items() if text.strip()}
            if texts and sheet.spans:
                above |= {at: (text, sheet.spans.get((number, at), 0)) for at, text in texts.items()}
                spanning = ((at, text) for at, (text, last) in above.items() if number <= last)
                texts |= {at: text for at, text in spanning if len(text) <= MAX_REPEATED}
            if any(column >= MAX_COLUMNS for column in texts):
                notes.append(f"only its first {MAX_COLUMNS} columns were read")
            filled = [column for column in texts if column < MAX_COLUMNS]
            if not filled:
                continue
            if not left:
                notes.append(f"only its first {MAX_ROWS:,} rows were read")
                break
            left -= 1
            characters += sum(map(len, texts.values()))
            if characters > MAX_CHARACTERS:
                raise TooMuchText  # Before a table repeats texts that rows share.
            builder.add(heading, f"sheet {name}")
            heading = ""
            place = row_label(name, number) if len(filled) > 1 else cell_label(name, filled[0], number)
            if rows and number > previous + 1 and widest <= 2 < len(filled):
                builder.add_rows(rows, places)  # Names and values above the table.
                rows, places, widest = [], [], 0
            previous = number
            if rows or len(filled) > 1:
                rows.append([texts.get(column, "") for column in range(max(filled) + 1)])
                widest = max(widest, len(rows[-1]))
                places.append(place)
            else:
                builder.add(texts[filled[0]], place)
        builder.add_rows(rows, places)
    return list(dict.fromkeys(notes))


class NumberFormat(Struct):
    """`before` and `after` are shown around the number, `after` with a percent sign."""

    before: str
    is_grouped: bool
    digits: int
    decimals: int
    after: str
    is_percent: bool


@lru_cache(1_000)
def _number_format(text: str) -> NumberFormat | None:
    """None if it is not followed."""
    found = NUMBER_FORMAT.fullmatch(LAYOUT.sub(r"\1", text)) if len(text) <= MAX_FORMAT else None
    if not found:
        return None
    before, comma, digits, decimals, after, percent = found.groups(default="")
    before, after = (SHOWN.sub(r"\1\2\3", one) for one in (before, after))
    return NumberFormat(before, bool(comma), len(digits), len(decimals), after, bool(percent))


def shown(value: object, number_format: str = "") -> str:
    """A value of a cell as the sheet shows it, dates in ISO 8601."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).upper()
        case timedelta():
            minutes, seconds = divmod(round(abs(value).total_seconds()), 60)
            found = f"{'-' if value < timedelta() else ''}{minutes // 60}:{minutes % 60:02}"
            return f"{found}:{seconds:02}" if "ss" in number_format.lower() else found
        case int() | float() if abs(value) < MAX_FORMATTED and (numbers := _number_format(number_format)):
            # People ask for 54000, not for 54000.00.
            decimals = 0 if numbers.is_grouped and value == int(value) else numbers.decimals
            number = Decimal(repr(value)) * (100 if numbers.is_percent else 1)
            rounded = number.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
            width = numbers.digits + decimals + bool(decimals)
            shown_number = f"{numbers.before}{abs(rounded):0{width}f}{numbers.after}".strip()
            return f"-{shown_number}" if value < 0 else shown_number
        case float():
            return f"{value:.15g}"
        case datetime():
            return value.isoformat(" ") if value.time() != time() else value.date().isoformat()
        case date():
            return value.isoformat()
    return str(value)
