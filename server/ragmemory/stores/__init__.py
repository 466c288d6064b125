"""What a memory stores, in one of two engines: an SQLite file, or PostgreSQL.

Start with `store.Store`, which joins the parts: `documents`, `passages`, `journal` and so on hold the
statements on their tables. A class named `…Store` has the transactions; functions take a connection and
never begin or commit one. `writing` commits documents. `leases` are what one process may do at a time;
`published` holds saved indexes, `remote` how far a remote index has followed; `copying` copies a memory from
one engine to another. `engine` says what an engine provides; `sqlite` and `postgres` are the two.
Knows neither embedders nor MCP.
"""
