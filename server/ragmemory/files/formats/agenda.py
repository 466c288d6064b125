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
from ragmemory.files.formats import text as plain_text
from ragmemory.files.formats.file_text import (
    INDENTED,
    FileText,
    TextBuilder,
    TooMuchText,
    clean,
    not_a_heading,
    one_line,
)

AGENDA = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s*\n)?begin:(?:vcalendar|vcard)\s*[\r\n]", re.IGNORECASE)
ENTRIES = frozenset(("VEVENT", "VTODO", "VJOURNAL", "VCARD"))
# Components in a component; more that are not ended end with the file.
MAX_NESTED = 10
QUOTED = "QUOTED-PRINTABLE"
LINE = re.compile(r"(?:([\w-]+)\.)?([\w-]+)((?:;(?:\"[^\"]*\"|[^\":])*)?):(.*)", re.DOTALL)
PARAMETER = re.compile(r";([\w-]+)(?:=(\"[^\"]*\"|[^;]*))?")
ESCAPED = re.compile(r"\\([\\;:,nN])")
DATE = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d)(?::?\d\d)?(Z?).*)?")
# A birthday without its year.
DAY = re.compile(r"--(\d\d)-?(\d\d)")
MARKUP = re.compile(r"</?(?:a|b|br|div|html|i|li|ol|p|span|u|ul)\b[^>]*>", re.IGNORECASE)
# What is shown of an entry, and how it is called.
NAMES = {
    **{"DTSTART": "When", "DTEND": "Until", "DURATION": "Duration", "DUE": "Due", "COMPLETED": "Completed"},
    **{"RRULE": "Repeats", "RDATE": "Also on", "EXDATE": "Except on", "LOCATION": "Where"},
    **{"ORGANIZER": "Organizer", "ATTENDEE": "Attendees", "STATUS": "Status", "NICKNAME": "Nickname"},
    **{"ORG": "Organization", "TITLE": "Title", "ROLE": "Role", "TEL": "Phone", "EMAIL": "E-mail"},
    **{"ADR": "Address", "BDAY": "Birthday", "ANNIVERSARY": "Anniversary", "X-ABDATE": "Date"},
    **{"RELATED": "Related", "X-ABRELATEDNAMES": "Related", "URL": "URL", "CATEGORIES": "Tags"},
}
TEXTS = ("DESCRIPTION", "NOTE")
DATES = frozenset(("DTSTART", "DTEND", "DUE", "COMPLETED", "RDATE", "EXDATE", "X-ABDATE"))
DAYS = frozenset(("BDAY", "ANNIVERSARY"))
PEOPLE = frozenset(("ORGANIZER", "ATTENDEE"))
# What has a kind: "home", "work" …
OF_A_KIND = frozenset(("TEL", "EMAIL", "ADR", "URL", "RELATED", "X-ABRELATEDNAMES", "X-ABDATE"))
NO_KINDS = frozenset(("", "pref", "internet", "voice", "x-internet", "other", "quoted-printable"))
# Apple's label of the property with the same group, and what it puts around its own labels.
LABEL = "X-ABLABEL"
LABEL_MARKS = "_$!<>"
RULES = {
    **{"INTERVAL": "every {}", "BYDAY": "on {}", "BYMONTHDAY": "on day {}", "BYMONTH": "in month {}"},
    **{"COUNT": "{} times", "UNTIL": "until {}", "WKST": ""},
}


class Property(NamedTuple):
    name: str
    group: str
    parameters: Mapping[str, str]
    value: str


Entry = list[Property]


def read(path: Path, data: bytes) -> FileText:
    """The entries of a file; its text if there are none. Raises NotText."""
    decoded = decode(data)
    builder, note, number = TextBuilder(), decoded.note, 0
    try:
        for number, entry in enumerate(_entries(decoded.text), 1):
            for part in _parts(entry):
                builder.add(part, f"record {number}")
    except TooMuchText as error:
        note = f"{error}, and was read only up to record {number:,}"
    return builder.build(path.name, note) if number else plain_text.read(path, data)


def _entries(text: str) -> Iterator[Entry]:
    """The properties of each entry, without those of its alarms; also of entries that are not ended."""
    opened: list[tuple[str, Entry]] = []
    for line in _lines(text):
        if not (found := LINE.fullmatch(line)):
            continue
        group, name, value = found[1] or "", found[2].upper(), found[4].strip()
        kind = value.upper()
        if name == "BEGIN":
            opened.append((kind, []))
        elif name == "END":
            yield from _closed(opened, kind)
        elif opened and opened[-1][0] in ENTRIES:
            parameters = _parameters(found[3])
            value = _unquoted(value, parameters) if QUOTED in found[3].upper() else value
            opened[-1][1].append(Property(name, group, parameters, value))
    while opened:
        yield from _closed(opened, opened[-1][0])


def _closed(opened: list[tuple[str, Entry]], kind: str) -> Iterator[Entry]:
    """The entries that end with the innermost component of this kind: what is open in it ends too."""
    if kind in (one for one, _ in opened[-MAX_NESTED:]):
        ended = ""
        while ended != kind:
            ended, entry = opened.pop()
            if entry:
                yield entry


def _lines(text: str) -> Iterator[str]:
    """The lines. A long one goes on in the next, after a space; quoted ones after a "=" at the end."""
    parts: list[str] = []
    is_quoted = False
    for line in text.split("\n"):
        if is_quoted and parts[-1].endswith("="):
            parts[-1] = parts[-1][:-1]
            parts.append(line)
        elif parts and line.startswith((" ", "\t")):
            parts.append(line[1:])
        else:
            yield "".join(parts)
            parts, is_quoted = [line], QUOTED in line.partition(":")[0].upper()
    yield "".join(parts)


def _parameters(text: str) -> dict[str, str]:
    """The parameters of a property. Its types may be stated one by one, in old contacts without "TYPE="."""
    stated: dict[str, str] = {}
    for key, value in PARAMETER.findall(text):
        name, one = (key.upper(), value.strip('"')) if value else ("TYPE", key)
        stated[name] = f"{stated[name]},{one}" if name in stated else one
    return stated


def _unquoted(value: str, parameters: Mapping[str, str]) -> str:
    data = decodestring(value.encode())
    return decode_as(data, parameters.get("CHARSET", "utf-8")) or data.decode(errors="replace")


def _parts(entry: Entry) -> Iterator[str]:
    """The heading of an entry, its facts, and its texts."""
    values: dict[str, str] = {}
    for one in entry:
        values.setdefault(one.name, _plain(one.value))
    yield f"# {one_line(values.get('SUMMARY') or values.get('FN') or _name(entry) or 'Without a name')}"
    labels = {one.group: one.value.strip(LABEL_MARKS).lower() for one in entry if one.name == LABEL}
    facts: dict[str, list[str]] = {}
    for name, label in NAMES.items():
        for one in entry:
            if one.name == name and (shown := one_line(_shown(one))):
                kind = (labels.get(one.group) or _kind(one)) if name in OF_A_KIND else ""
                facts.setdefault(label + (f" ({kind})" if kind else ""), []).append(shown)
    if facts.get("Until", [""]) <= facts.get("When", [""]):  # It lasts a day, or states its end wrongly.
        facts.pop("Until", None)
    yield "\n".join(f"{label}: {'; '.join(dict.fromkeys(found))}" for label, found in facts.items())
    for name in TEXTS:
        yield _text(values.get(name, ""))


def _text(text: str) -> str:
    """A text of an entry. A fence that is not closed would take in the entries below."""
    if MARKUP.search(text):
        from ragmemory.files.formats import html

        text, _ = html.markdown(text)
    lines = clean(text).split("\n")
    return "\n".join(INDENTED + line if FENCE.match(line) else not_a_heading(line) for line in lines)


def _name(entry: Sequence[Property]) -> str:
    """The name of a contact that states only its parts: the last name, the first …"""
    parts = next((one.value.split(";") for one in entry if one.name == "N"), [])
    return _plain(" ".join(filter(None, [*parts[1:2], *parts[:1]])))


def _kind(one: Property) -> str:
    kinds = one.parameters.get("TYPE", "").lower().split(",")
    return ", ".join(kind for kind in kinds if kind not in NO_KINDS)


def _shown(one: Property) -> str:
    """The value of a property as people write it."""
    if one.name in DAYS:
        year = one.parameters.get("X-APPLE-OMIT-YEAR", "")
        day = DATE.sub(r"\1-\2-\3", one.value, count=1)
        return DAY.sub(r"\1-\2", day.removeprefix(f"{year}-") if year else day)
    if one.name == "DTEND" and (last := _last_day(one.value)):
        return last
    if one.name in DATES:
        zone = one.parameters.get("TZID", "")
        stated = one.value.split(",")
        return ", ".join(DATE.sub(lambda found: _date(found, zone), each, count=1) for each in stated)
    if one.name in PEOPLE:
        name = one.parameters.get("CN") or re.sub(r"^mailto:", "", one.value, flags=re.IGNORECASE)
        return name + (" (declined)" if one.parameters.get("PARTSTAT", "").upper() == "DECLINED" else "")
    if one.name == "RRULE":
        return _rule(dict(part.partition("=")[::2] for part in one.value.split(";")))
    if one.name in ("ADR", "ORG"):
        return ", ".join(filter(None, map(_plain, re.split(r"(?<!\\);", one.value))))
    return _plain(one.value)


def _rule(rule: dict[str, str]) -> str:
    """When an event repeats, such as "weekly, on MO, 10 times"."""
    rule["UNTIL"] = DATE.sub(r"\1-\2-\3", rule.get("UNTIL", ""))
    frequency = rule.pop("FREQ", "").lower()
    rest = (RULES.get(key, f"{key.lower()} {{}}").format(value) for key, value in rule.items() if value)
    return ", ".join(filter(None, [frequency, *rest]))


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
