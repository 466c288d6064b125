"""Finding: the query, the two halves of the search and their fusion, and the index that follows the store.

Start with `retriever.Retriever.search`; `sync` keeps the index in step, `index` holds it. Knows no MCP.
"""
