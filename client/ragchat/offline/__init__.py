"""Answers without a model: cards with the best windows of passages, verbatim. Pure.

Start with `cards`. `views` shows the structure of a document: its outline, all rows of a table.
"""
