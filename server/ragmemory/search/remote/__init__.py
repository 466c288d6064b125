"""An index on a server, for memories too large for an index in every process: pgvector, or a Qdrant.

It yields candidates only; their scores are computed here, from their texts and the statistics of the whole
memory, as in an index of all chunks. Start with `remote_index`. `updating.RemoteUpdater` sends the changes of
the store to the server, from one process at a time; `vector_store` says what is needed of a server, and
`pgvector` and `qdrant` are the two.
"""
