"""The index over the chunks, derived from the store: BM25, vectors and bigrams, in numpy.

A *row* is the position of a chunk in the order of chunk ids. Start with `chunk_index`, which knows the rows
that are excluded. `segments` are immutable parts of the index, `saving` writes them to files.
"""
