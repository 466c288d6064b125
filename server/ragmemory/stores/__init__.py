"""The memory's SQLite file, which several processes may use at once.

Start with `sqlite.Store`, which joins the parts: `documents`, `passages`, `journal` and so on hold the
statements on their tables. A class named `…Store` has the transactions; functions take a connection and never
begin or commit one. `writing` commits documents. `file` opens the file in WAL mode, through
`ragcommon.sqlite.wal`. Knows neither embedders nor MCP.
"""
