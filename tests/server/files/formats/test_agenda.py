"""Calendars and contacts."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

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
ATTENDEE;CN="Ortiz, Sam";PARTSTAT=DECLINED:mailto:sam@example.org
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
        "Attendees: Priya Nair; Ortiz, Sam (declined); helen@example.org\n\n"
        "Bring ten copies.\n    # Wear the green coat\n\n"
        "# Chimney sweep\n\nWhen: 2025-03-04\n\n"
        "# Öland\n\nWhen: 2024-08-03\nUntil: 2024-08-17\nRepeats: yearly, every 2, until 2030-12-31\n\n"
        "# Renew the passport\n\nDue: 2025-01-15 12:00 UTC\nStatus: NEEDS-ACTION\n"
    )
    assert (found.title, found.note) == ("a.ics", "")


def test_contacts_are_read_also_of_old_phones_and_without_their_pictures() -> None:
    assert read(Path("a.vcf"), CONTACTS.encode()).text == (
        "# Viktor Kessler\n\nOrganization: Kessler & Sohn, Workshop\nPhone (cell): +49 30 5550199\n"
        "E-mail (work): info@kessler.example\nAddress (home): Gneisenaustr. 5, Berlin, 10961, Germany\n"
        "Birthday: 1970-01-02\n\nplumber, only mornings\n\n"
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
def test_a_file_without_entries_is_read_as_a_text(text: str) -> None:
    assert read(Path("a.ics"), text.encode()).text == text


def test_dates_that_are_none_are_shown_as_they_are() -> None:
    text = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:soon\nDTEND;VALUE=DATE:00010101\nEND:VEVENT\nEND:VCALENDAR"
    assert read(Path("a.ics"), text.encode()).text == "# Without a name\n\nWhen: soon\n"


@pytest.mark.parametrize(
    "line",
    [
        *("QUOTED-PRINTABLE" * 20_000, "A" + ";" * 300_000, "=\n" * 150_000, "\\" * 300_000),
        *(
            "X;QUOTED-PRINTABLE" + "a" * 100_000 + "=\n" + "=\n" * 100_000,
            "BEGIN:X\n" * 100_000 + "END:Y\n" * 100_000,
        ),
    ],
)
def test_odd_lines_are_read_in_linear_time(line: str) -> None:
    started = time.monotonic()
    read(Path("a.vcf"), f"BEGIN:VCARD\n{line}\nNOTE:{line}\nEND:VCARD\n".encode())
    assert time.monotonic() - started < 5


def headings(text: str) -> list[str]:
    found = read(Path("a.ics"), text.encode()).text
    return [line for line in found.splitlines() if line.startswith("# ")]


def test_components_that_are_nested_or_not_ended_lose_no_entry() -> None:
    one, two = "BEGIN:VEVENT\nSUMMARY:One\n", "BEGIN:VEVENT\nSUMMARY:Two\nEND:VEVENT\n"
    alarm = "BEGIN:VALARM\nSUMMARY:Alarm\n"
    for text in (one + two, one + alarm + "END:VEVENT\n" + two, two + one, one + alarm + two):
        assert sorted(headings(f"BEGIN:VCALENDAR\n{text}")) == ["# One", "# Two"]
        assert sorted(headings(f"BEGIN:VCALENDAR\n{text}END:VCALENDAR\n")) == ["# One", "# Two"]
    agent = "BEGIN:VCARD\nFN:Boss\nAGENT:\nBEGIN:VCARD\nFN:Helper\nEND:VCARD\nTEL:1\nEND:VCARD\n"
    assert sorted(headings(agent)) == ["# Boss", "# Helper"]
    assert len(headings("BEGIN:VCALENDAR\n" + one + "BEGIN:VEVENT\n" * 1000 + "END:VEVENT\n" * 1001)) == 1


def fact(line: str) -> str:
    """How a property of an event or contact is shown."""
    return (
        read(Path("a.vcf"), f"BEGIN:VCARD\nFN:A\n{line}\nEND:VCARD\n".encode()).text.split("\n", 2)[2].strip()
    )


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("TEL;type=CELL;type=VOICE;type=pref:1", "Phone (cell): 1"),
        ("TEL;WORK;FAX:2", "Phone (work, fax): 2"),
        ("item1.TEL:3\nitem1.X-ABLabel:_$!<HomeFAX>!$_", "Phone (homefax): 3"),
        ("item2.X-ABRELATEDNAMES;type=pref:Bo\nitem2.X-ABLabel:_$!<Spouse>!$_", "Related (spouse): Bo"),
        ("BDAY;X-APPLE-OMIT-YEAR=1604:1604-03-05", "Birthday: 03-05"),
        ("BDAY:--0415", "Birthday: 04-15"),
        ("BDAY:1970-01-02T00:00:00Z", "Birthday: 1970-01-02"),
        ("URL:https\\://a.example", "URL: https://a.example"),
        ("NOTE:Allergies:\\n- nuts", "Allergies:\n- nuts"),
        ("NOTE;ENCODING=QUOTED-PRINTABLE:Hello=\n world=\n!", "Hello world!"),
        ("DESCRIPTION:<p>Bring <b>slides</b> &amp; tea</p>", "Bring slides & tea"),
        ("DTSTART:20250304T090000\nDURATION:PT1H", "When: 2025-03-04 09:00\nDuration: PT1H"),
        ("DTSTART;VALUE=DATE:20250304\nDTEND;VALUE=DATE:20250304", "When: 2025-03-04"),
        ("EXDATE;VALUE=DATE:20250401,20250408", "Except on: 2025-04-01, 2025-04-08"),
        ("RRULE:FREQ=MONTHLY;BYMONTHDAY=15;COUNT=3;WKST=MO", "Repeats: monthly, on day 15, 3 times"),
        ("RRULE:FREQ=MONTHLY;BYDAY=FR;BYSETPOS=-1", "Repeats: monthly, on FR, bysetpos -1"),
    ],
)
def test_facts_are_shown_as_people_write_them(line: str, shown: str) -> None:
    assert fact(line) == shown


def test_separators_and_fences_in_a_description_belong_to_it() -> None:
    entry = "BEGIN:VEVENT\nSUMMARY:{}\nDESCRIPTION:{}\nEND:VEVENT\n"
    events = entry.format("One", "a\u2028b\x85c\\n```") + entry.format("Two", "d")
    text = read(Path("a.ics"), f"BEGIN:VCALENDAR\n{events}END:VCALENDAR\n".encode()).text
    assert all(part in text for part in ("a\nb", "c", "\n    ```", "# Two\n\nd\n"))
