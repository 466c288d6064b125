"""Migrations in a file of SQL."""

from __future__ import annotations

from pathlib import Path

from ragcommon.migrations import migrations


def test_each_version_has_its_statements_with_their_comments(tmp_path: Path) -> None:
    file = tmp_path / "schema.sql"
    file.write_text(
        "-- Tables.\n\n-- Version 1\n\n-- One.\nCREATE TABLE a(\n    b TEXT\n);\n\nCREATE TABLE c(d);\n\n"
        "-- Version 2\n-- Also of this.\n\nDROP TABLE c;\n",
        encoding="utf-8",
    )
    assert migrations(file) == (
        ("-- One.\nCREATE TABLE a(\n    b TEXT\n);", "CREATE TABLE c(d);"),
        ("DROP TABLE c;\n",),
    )
