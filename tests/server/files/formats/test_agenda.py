"""Calendars and contacts."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.detection import module_of, read

CALENDAR = r"""BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:STANDARD
DTSTART:19701025T030000
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
UID:1
DTSTART;TZID="Europe/Berlin":20241114T193000
DTEND;TZID=Europe/Berlin:20241114T220000
SUMMARY:Anthology launch
LOCATION:Literaturhaus Berlin\, Fasanenstr. 23
ATTENDEE;CN=Priya Nair;PARTSTAT=ACCEPTED:mailto:priya@example.org
ATTENDEE;CN="Ortiz, Sam":mailto:sam@example.org
ATTENDEE:MAILTO:helen@example.org
DESCRIPTION:Bring ten co
 pies.\n# Wear the green coat
BEGIN:VALARM
DESCRIPTION:Reminder
END:VALARM
END:VEVENT
BEGIN:VEVENT
SUMMARY:Chimney sweep
DTSTART;VALUE=DATE:20250304
DTEND;VALUE=DATE:20250305
END:VEVENT
BEGIN:VEVENT
SUMMARY:Öland
DTSTART;VALUE=DATE:20240803
DTEND;VALUE=DATE:20240818
RRULE:FREQ=YEARLY;INTERVAL=2;UNTIL=20301231T000000Z
END:VEVENT
BEGIN:VTODO
SUMMARY:Renew the passport
DUE:20250115T120000Z
STATUS:NEEDS-ACTION
END:VTODO
END:VCALENDAR
"""
CONTACTS = r"""BEGIN:VCARD
VERSION:3.0
N:Kessler;Viktor;;;
FN:Viktor Kessler
ORG:Kessler & Sohn;Workshop
TEL;TYPE=CELL:+49 30 5550199
item1.EMAIL;type=INTERNET;type=WORK:info@kessler.example
ADR;TYPE=HOME:;;Gneisenaustr. 5;Berlin;;10961;Germany
BDAY:1970-01-02
NOTE:plumber\, only mornings
PHOTO;ENCODING=b:/9j/4AAQ
 SkZJRg
END:VCARD
BEGIN:VCARD
VERSION:2.1
N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=
=B6rg;;;
TEL;CELL:0170 1
END:VCARD
"""


def test_events_and_tasks_are_read_with_their_dates_places_and_people() -> None:
    found = read(Path("a.ics"), CALENDAR.replace("\n", "\r\n").encode())
    assert found.text == (
        "# Anthology launch\n\nWhen: 2024-11-14 19:30 (Europe/Berlin)\n"
        "Until: 2024-11-14 22:00 (Europe/Berlin)\n"
        "Where: Literaturhaus Berlin, Fasanenstr. 23\n"
        "Attendees: Priya Nair, Ortiz, Sam, helen@example.org\n\n"
        "Bring ten copies.\n    # Wear the green coat\n\n"
        "# Chimney sweep\n\nWhen: 2025-03-04\n\n"
        "# Öland\n\nWhen: 2024-08-03\nUntil: 2024-08-17\nRepeats: yearly, interval 2, until 2030-12-31\n\n"
        "# Renew the passport\n\nDue: 2025-01-15 12:00 UTC\nStatus: NEEDS-ACTION\n"
    )
    assert (found.title, found.note) == ("a.ics", "")


def test_contacts_are_read_also_of_old_phones_and_without_their_pictures() -> None:
    assert read(Path("a.vcf"), CONTACTS.encode()).text == (
        "# Viktor Kessler\n\nOrganization: Kessler & Sohn, Workshop\nPhone (cell): +49 30 5550199\n"
        "E-mail (work): info@kessler.example\nAddress (home): Gneisenaustr. 5, Berlin, 10961, Germany\n"
        "Birthday: 1970-01-02\nNote: plumber, only mornings\n\n"
        "# Jörg Müller\n\nPhone (cell): 0170 1\n"
    )


def test_each_entry_is_a_place() -> None:
    places = read(Path("a.ics"), CALENDAR.encode()).places
    assert list(dict.fromkeys(name for _, name in places)) == [f"record {number}" for number in range(1, 5)]


def test_the_first_line_decides() -> None:
    assert module_of(Path("a.ics"), CALENDAR.encode()) == "agenda"
    assert module_of(Path("a.txt"), b"\xef\xbb\xbf\r\nbegin:vcard\r\n") == "agenda"
    assert module_of(Path("a.ics"), b"Begin: vcard is a line of vCard") == "text"


@pytest.mark.parametrize(
    "text", ["BEGIN:VCALENDAR\nEND:VCALENDAR\n", "BEGIN:VCARD\n", "BEGIN:VCALENDAR\nEND:VEVENT\nDTEND:1\n"]
)
def test_a_file_without_entries_has_no_text(text: str) -> None:
    with pytest.raises(NotText, match="holds no text"):
        read(Path("a.ics"), text.encode())


def test_dates_that_are_none_are_shown_as_they_are() -> None:
    text = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:soon\nDTEND;VALUE=DATE:00010101\nEND:VEVENT\nEND:VCALENDAR"
    assert read(Path("a.ics"), text.encode()).text == "# Without a name\n\nWhen: soon\nUntil: 0001-01-01\n"


@pytest.mark.parametrize(
    "line", ["QUOTED-PRINTABLE" * 20_000, "A" + ";" * 300_000, "=\n" * 150_000, "\\" * 300_000]
)
def test_odd_lines_are_read_in_linear_time(line: str) -> None:
    started = time.monotonic()
    read(Path("a.vcf"), f"BEGIN:VCARD\n{line}\nNOTE:{line}\nEND:VCARD\n".encode())
    assert time.monotonic() - started < 5


def test_the_kinds_of_a_number_may_be_stated_one_by_one() -> None:
    card = (
        "BEGIN:VCARD\nFN:Ada\nTEL;type=CELL;type=VOICE;type=pref:1\nTEL;WORK;QUOTED-PRINTABLE:2\nEND:VCARD\n"
    )
    assert "Phone (cell): 1\nPhone (work): 2\n" in read(Path("a.vcf"), card.encode()).text


def test_separators_and_fences_in_a_description_belong_to_it() -> None:
    entry = "BEGIN:VEVENT\nSUMMARY:{}\nDESCRIPTION:{}\nEND:VEVENT\n"
    events = entry.format("One", "a\u2028b\x85c\\n```") + entry.format("Two", "d")
    text = read(Path("a.ics"), f"BEGIN:VCALENDAR\n{events}END:VCALENDAR\n".encode()).text
    assert all(part in text for part in ("a\nb", "c", "\n    ```", "# Two\n\nd\n"))
