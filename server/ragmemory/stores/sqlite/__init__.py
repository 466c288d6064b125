"""The engine of a memory in one SQLite file, which several processes may use at once.

`file` opens it in WAL mode, through `ragcommon.sqlite.wal`; `dialect` has the SQL that only SQLite accepts.
"""
