"""Indexes over the chunks, derived from the store: words (BM25) and vectors (cosine), exact, in numpy.

All speak of *rows*: the position of a chunk in the order it came. What row is which chunk, and which rows
are gone, is the retriever's business.
"""
