"""SQLite files that several processes use: `wal` opens those to write, `readonly` those only to read."""
