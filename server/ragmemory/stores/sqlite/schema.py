"""The tables, as a list of migrations: see `schema.sql`."""

from __future__ import annotations

from pathlib import Path

from ragcommon.migrations import migrations

# "RAGM": another program's database is refused instead of changed.
APPLICATION_ID = 0x5241474D

MIGRATIONS = migrations(Path(__file__).with_name("schema.sql"))
