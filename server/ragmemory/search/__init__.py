"""The search: query syntax, BM25 and vectors, their fusion, and the index that follows the store.

Start with `searching.Search.query`; `retriever` finds the chunks, `ranking` computes the scores of hits.
`indexing` says what the memory needs of an index: `sync` keeps one in this process (`index`) up to date and
`publishing` shares it with other machines; `remote` has one on a server. Knows no MCP.
"""
