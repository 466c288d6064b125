"""Text to terms: what counts as a word, its stem, and tables of words. Pure.

Start with `analysis`, which texts and queries share.
"""
