"""Notebooks: views on the one memory, each with a scope, instructions, a model and conversations of its own.

Start with `definitions` (what a notebook is, and its file); `transfer` is the file that is shared.
"""
