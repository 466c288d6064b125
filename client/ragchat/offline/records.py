"""The records of a CSV or TSV text, and what they say. Pure.

Unlike the `csv` module, this knows where in the text each record stands.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

# Between the fields of a record as a person reads it: "name: Skua · call sign: MHK4".
FIELD_SEPARATOR = " · "
_SEPARATORS = "\t;,"
# Up to a line end that is not in a quoted field. A quotation mark inside of a field is an ordinary character.
_RECORD = re.compile(r'(?:(?<![^,;\t\n])"(?:[^"]|"")*+"|[^\n])+')


def record_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each record begins and ends, without the white space around it. A quoted field may have lines."""
    for found in _RECORD.finditer(text):
        if record := found.group().strip("\r\n "):
            start = found.start() + found.group().index(record)
            yield start, start + len(record)


def separator_of(line: str) -> str:
    """The separator that a line has most often; a comma if it has none."""
    outside = re.sub(r'"[^"]*"', "", line)
    return max(_SEPARATORS[::-1], key=outside.count)


def fields(record: str, separator: str) -> list[str]:
    """The values of a record, each on one line."""
    rows = csv.reader(record.splitlines(keepends=True), delimiter=separator, skipinitialspace=True)
    return [" ".join(value.split()) for value in next(rows, [])]


def named_fields(columns: Sequence[str], values: Sequence[str]) -> str:
    """`column: value` for each value that is not empty; the value alone where the column has no name."""
    names = [*columns, *[""] * len(values)]
    pairs = [(name, value) for name, value in zip(names, values, strict=False) if value]
    return FIELD_SEPARATOR.join(f"{name}: {value}" if name else value for name, value in pairs)
