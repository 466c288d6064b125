"""Printing: streaming answers, Markdown, sources, /why, progress bars.

Start with `answer`; `highlight` finds the significant words of a question in quotations. Imports rich.
"""
