"""Calendars (.ics) and contacts (.vcf): each event, task or contact as Markdown below its name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from quopri import decodestring
from typing import NamedTuple

from ragcommon.files.decoding import decode, decode_as
from ragcommon.text.rules import FENCE
from ragmemory.files.formats.file_text import (
    INDENTED,
    FileText,
    TextBuilder,
    TooMuchText,
    clean,
    not_a_heading,
    one_line,
)

AGENDA = re.compile(rb"(?:\xef\xbb\xbf)?\s*begin:(?:vcalendar|vcard)\s*[\r\n]", re.IGNORECASE)
ENTRIES = frozenset(("VEVENT", "VTODO", "VJOURNAL", "VCARD"))
# A long line goes on in the next one, which begins with a space.
FOLDED = re.compile(r"\r?\n[ \t]")
QUOTED = "QUOTED-PRINTABLE"
LINE = re.compile(r"(?:[\w-]+\.)?([\w-]+)((?:;(?:\"[^\"\n]*\"|[^\":\n])*)?):(.*)")
PARAMETER = re.compile(r";([\w-]+)(?:=(\"[^\"]*\"|[^;]*))?")
ESCAPED = re.compile(r"\\([\\;,nN])")
DATE = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d)(?::?\d\d)?(Z?).*)?")
# What is shown of an entry, and how it is called.
NAMES = {
    **{"DTSTART": "When", "DTEND": "Until", "DUE": "Due", "COMPLETED": "Completed", "RRULE": "Repeats"},
    **{"LOCATION": "Where", "ORGANIZER": "Organizer", "ATTENDEE": "Attendees", "STATUS": "Status"},
    **{"NICKNAME": "Nickname", "ORG": "Organization", "TITLE": "Title", "ROLE": "Role", "TEL": "Phone"},
    **{"EMAIL": "E-mail", "ADR": "Address", "BDAY": "Birthday", "ANNIVERSARY": "Anniversary"},
    **{"RELATED": "Related", "URL": "URL", "CATEGORIES": "Tags", "NOTE": "Note"},
}
DATES = frozenset(("DTSTART", "DTEND", "DUE", "COMPLETED", "BDAY", "ANNIVERSARY"))
NO_KINDS = frozenset(("", "pref", "internet", "voice", "x-internet", "quoted-printable"))
PEOPLE = frozenset(("ORGANIZER", "ATTENDEE"))


class Property(NamedTuple):
    name: str
    parameters: Mapping[str, str]
    value: str


def read(path: Path, data: bytes) -> FileText:
    """The entries of a file. Raises NotText."""
    decoded = decode(data)
    builder, note, number = TextBuilder(), decoded.note, 0
    try:
        for number, entry in enumerate(_entries(decoded.text), 1):
            for part in _parts(entry):
                builder.add(part, f"record {number}")
    except TooMuchText as error:
        note = f"{error}, and was read only up to record {number:,}"
    return builder.build(path.name, note)


def _entries(text: str) -> Iterator[Sequence[Property]]:
    """The properties of each entry, without those of its alarms."""
    opened: list[str] = []
    entry: list[Property] = []
    for line in _lines(FOLDED.sub("", text)):
        if not (found := LINE.fullmatch(line)):
            continue
        name, value = found[1].upper(), found[3].strip()
        if name == "BEGIN":
            opened.append(value.upper())
            entry = [] if opened[-1] in ENTRIES else entry
        elif name == "END":
            if opened and opened.pop() in ENTRIES:
                yield entry
        elif opened and opened[-1] in ENTRIES:
            stated = _parameters(found[2])
            is_quoted = QUOTED in found[2].upper()
            entry.append(Property(name, stated, _unquoted(value, stated) if is_quoted else value))


def _parameters(text: str) -> dict[str, str]:
    """The parameters of a property. Its types may be stated one by one, in old contacts without "TYPE="."""
    stated: dict[str, str] = {}
    for key, value in PARAMETER.findall(text):
        name, one = (key.upper(), value.strip('"')) if value else ("TYPE", key)
        stated[name] = f"{stated[name]},{one}" if name in stated else one
    return stated


def _lines(text: str) -> Iterator[str]:
    """The lines; those of older contacts go on after a "=" at the end."""
    parts: list[str] = []
    for line in re.split(r"\r\n?|\n", text):
        parts.append(line)
        if not (line.endswith("=") and QUOTED in parts[0].partition(":")[0].upper()):
            yield "".join(part.removesuffix("=") for part in parts[:-1]) + line
            parts = []


def _unquoted(value: str, parameters: Mapping[str, str]) -> str:
    data = decodestring(value.encode())
    return decode_as(data, parameters.get("CHARSET", "utf-8")) or data.decode(errors="replace")


def _parts(entry: Sequence[Property]) -> Iterator[str]:
    """The heading of an entry, its facts, and its description."""
    values: dict[str, str] = {}
    for one in entry:
        values.setdefault(one.name, _plain(one.value))
    yield f"# {one_line(values.get('SUMMARY') or values.get('FN') or _name(entry) or 'Without a name')}"
    facts: dict[str, list[str]] = {}
    for name, label in NAMES.items():
        for one in entry:
            if one.name == name and (shown := one_line(_shown(one))):
                kind = _kind(one) if name in ("TEL", "EMAIL", "ADR", "RELATED") else ""
                facts.setdefault(label + (f" ({kind})" if kind else ""), []).append(shown)
    if facts.get("Until") == facts.get("When"):
        facts.pop("Until", None)
    yield "\n".join(f"{label}: {', '.join(dict.fromkeys(found))}" for label, found in facts.items())
    description = clean(values.get("DESCRIPTION", ""))
    # A fence that is not closed would take in the entries below.
    yield "\n".join(
        INDENTED + line if FENCE.match(line) else not_a_heading(line) for line in description.split("\n")
    )


def _name(entry: Sequence[Property]) -> str:
    """The name of a contact that states only its parts: the last name, the first …"""
    parts = next((one.value.split(";") for one in entry if one.name == "N"), [])
    return _plain(" ".join(filter(None, [*parts[1:2], *parts[:1]])))


def _kind(one: Property) -> str:
    """The kinds of a phone number or address: "home", "work" …"""
    kinds = one.parameters.get("TYPE", "").lower().split(",")
    return ", ".join(kind for kind in kinds if kind not in NO_KINDS)


def _shown(one: Property) -> str:
    """The value of a property as people write it."""
    if one.name == "DTEND" and (last := _last_day(one.value)):
        return last
    if one.name in DATES:
        zone = one.parameters.get("TZID", "")
        return DATE.sub(lambda stated: _date(stated, zone), one.value, count=1)
    if one.name in PEOPLE:
        return one.parameters.get("CN") or re.sub(r"^mailto:", "", one.value, flags=re.IGNORECASE)
    if one.name == "RRULE":
        rule = dict(part.partition("=")[::2] for part in one.value.split(";"))
        rule["UNTIL"] = DATE.sub(r"\1-\2-\3", rule.get("UNTIL", ""))
        names = {"BYDAY": "on", "COUNT": "times", "INTERVAL": "interval", "UNTIL": "until"}
        rest = [f"{name} {rule[key]}" for key, name in names.items() if rule.get(key)]
        return ", ".join([rule.get("FREQ", "").lower(), *rest])
    if one.name in ("ADR", "ORG"):
        return ", ".join(filter(None, map(_plain, re.split(r"(?<!\\);", one.value))))
    return _plain(one.value)


def _last_day(value: str) -> str:
    """The last day of an event that lasts whole days, of which the day after is stated; "" for others."""
    try:
        return str(date.fromisoformat(value) - timedelta(days=1))
    except (ValueError, OverflowError):
        return ""


def _date(stated: re.Match[str], zone: str) -> str:
    year, month, day, hour, minute, is_utc = stated.groups()
    time = f" {hour}:{minute}" if hour else ""
    where = " UTC" if is_utc else f" ({zone})" if zone and time else ""
    return f"{year}-{month}-{day}{time}{where}"


def _plain(value: str) -> str:
    return ESCAPED.sub(lambda sign: "\n" if sign[1] in "nN" else sign[1], value)
