"""Printing: streaming answers, Markdown, sources, /why, progress bars.

Start with `answer`. Imports rich.
"""
