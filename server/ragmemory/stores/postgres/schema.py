"""The tables, as a list of migrations: see `schema.sql`."""

from __future__ import annotations

from pathlib import Path

from ragcommon.migrations import migrations

MIGRATIONS = migrations(Path(__file__).with_name("schema.sql"))
