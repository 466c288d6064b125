"""The memory's SQLite file, which several processes may use at once.

Start with `sqlite.Store`. `file` opens the file in WAL mode, through `ragconfig.wal`. The other modules hold
the statements on its tables, which take a connection and never begin or commit a transaction; `journal` is
the history of writes, for undo. Knows neither embedders nor MCP.
"""
