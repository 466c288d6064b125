"""Text analysis: words, stems and terms, and numbers for many words at a time. Pure.

Start with `analysis`, which is shared by texts and queries; `languages` lists programming languages. Imports
no other part of the memory.
"""
