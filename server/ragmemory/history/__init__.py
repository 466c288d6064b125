"""The history of writes: the journal, versions of documents, undo.

Start with `history.History`. The tables are in `stores.journal` and `stores.versions`. Knows no MCP.
"""
