"""Text analysis: words, stems and terms, and numbers for many words at a time. Pure.

Start with `analysis`, which texts and queries share; `languages` are those of source code. Imports nothing
else of the memory.
"""
