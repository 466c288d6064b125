"""Differences, line by line."""

from __future__ import annotations

from ragchat.web.changes import diff_lines

DIFF = """\
--- tea.md (version 1)
+++ tea.md (version 2)
@@ -2,3 +2,3 @@
 # Tea
--- sugar
+++ milk
 end
--- metadata
+++ metadata
@@ -1 +1 @@
-a
+b
"""


def test_the_lines_of_a_difference_have_their_sign_and_their_numbers() -> None:
    assert [*diff_lines(DIFF)] == [
        ("@", None, None, "--- tea.md (version 1)"),
        ("@", None, None, "+++ tea.md (version 2)"),
        ("@", None, None, "@@ -2,3 +2,3 @@"),
        (" ", 2, 2, "# Tea"),
        ("-", 3, None, "-- sugar"),
        ("+", None, 3, "++ milk"),
        (" ", 4, 4, "end"),
        ("@", None, None, "--- metadata"),
        ("@", None, None, "+++ metadata"),
        ("@", None, None, "@@ -1 +1 @@"),
        ("-", 1, None, "a"),
        ("+", None, 1, "b"),
    ]


def test_equal_versions_have_no_lines() -> None:
    assert [*diff_lines("")] == []
