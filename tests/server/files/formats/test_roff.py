"""Manual pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragmemory.files.formats.detection import module_of
from ragmemory.files.formats.roff import read

FILE = Path("cup.1")
MAN = r"""'\" t
.\" Generated
.de URL
\fI\\$2\fP
. .
.TH "CUP" "1" "2026-01-31"
.if n .nh
.SH NAME
cup \- a \fBcup\fR, for \(lqtea\(rq \[u00E4] \s-1now\s0
.SH "EXIT STATUS"
.TP
.BR \-f ", " \-\-full =\fIlevel\fR
Fill it.  # it is no heading
.IP "\fB\-e\fP" 4
Empty it.
.IP \(bu 2
.B one
.IP \(bu
two
.SS Files
.nf
  /etc/cup\&.conf
# a comment
.fi
Done\c
"""
MARKDOWN = """\





# cup(1)

## NAME
cup - a cup, for “tea” ä now
## EXIT STATUS

-f, --full=level
Fill it.  # it is no heading
- -e
Empty it.

- one

- two
### Files
````
  /etc/cup.conf
# a comment
````
Done
"""
MDOC = r""".Dd January 31, 2026
.Dt CUP 5
.Sh NAME
.Nm cup
.Nd a cup
.Sh OPTIONS
.Nm
reads
.Pa /etc/cup ,
see
.Xr tea 7 .
.Bl -tag
.It Fl f Ar level Op Fl q
Fill it to
.Dq full .
.It
.Cm Empty
it.
.El
"""


def test_manual_pages_have_headings_lists_and_listings() -> None:
    found = read(FILE, MAN.encode())
    assert (found.text, found.title) == (MARKDOWN, "cup(1)")


def test_macros_of_mdoc_are_written_out() -> None:
    assert read(FILE, MDOC.encode()).text.split("\n") == [
        *(
            "",
            "# cup(5)",
            "## NAME",
            "cup",
            "a cup",
            "## OPTIONS",
            "cup",
            "reads",
            "/etc/cup,",
            "see",
            "tea(7).",
        ),
        *("", "- -f level [-q]", "Fill it to", "“full”.", "", "- Empty", "it.", "", ""),
    ]


def test_a_heading_in_a_listing_that_does_not_end_ends_it() -> None:
    page = ".TH A 1\n.SH B\n.EX\ncode\n.SH C\n.SH D\n"
    assert read(FILE, page.encode()).text == "# a(1)\n## B\n````\ncode\n````\n## D\n"


@pytest.mark.parametrize("before", ['\'\\" t\n.\\" Generated\n', ".\n.if n .nh\n.de EX\nany text\n..\n"])
def test_a_manual_page_is_recognised_by_its_requests(before: str) -> None:
    page = '.TH "CUP" "1"\n.SH NAME\ncup \\- a \\fBcup\\fR\n'
    assert module_of(FILE, f"{before}{page}".encode()) == "roff"
    assert module_of(Path("cup.txt"), f"{before}{page}".encode()) == "roff"
    assert module_of(FILE, f"A page of cups:\n{page}".encode()) == "text"
    assert module_of(FILE, b"'Twas a page.\n.TH begins it.\n") == "text"
