"""The search: query syntax, BM25 and vectors, their fusion, and the index that follows the store.

Start with `searching.Search.query`; `retriever` finds the chunks, `ranking` computes the scores of hits.
`sync` keeps the index up to date, `index` holds it. Knows no MCP.
"""
