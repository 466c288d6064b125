"""Answers without a model: cards with the windows of passages that answer best, as they were written. Pure.

Start with `cards`. `views` shows the structure of a document: its outline, all rows of a table.
"""
