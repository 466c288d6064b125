"""Printing: streaming answers, Markdown, sources, /why, progress bars.

Start with `answer`; `highlight` finds the telling words of a question in quotations. Imports rich.
"""
