"""Answers without a model: cards with the best windows of passages, verbatim. Pure.

Start with `answer`: `windows` chooses the best part of each passage, and `cards` shows it. `views` shows the
structure of a document: its outline, all rows of a table.
"""
