"""Answers without a model: the best sentences of the passages, quoted.

Start with `answer`.
"""
