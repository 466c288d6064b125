"""Answers without a model: the best sentences of the passages, quoted.

Start with `answer`. `words` finds the content words of a text, also for the turn's follow-up questions.
"""
