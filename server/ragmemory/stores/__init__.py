"""The memory's SQLite file, which several processes may use at once.

Start with `sqlite.Store`. `file` opens the file; the other modules hold the statements on its tables, which
take a connection and never begin or commit a transaction. Knows neither embedders nor MCP.
"""
