"""Indexes over the chunks, derived from the store: words (BM25) and vectors (cosine), exact, in numpy.

All speak of *rows*: the position of a chunk in the order it came. What row is which chunk, and which rows
are gone, is the retriever's business.
"""

from __future__ import annotations

import os

# Two BLAS threads collapse as soon as another process is busy (a 10,000 row scan goes from 0.4 to 8 ms).
# It must be set before numpy is imported for the first time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
