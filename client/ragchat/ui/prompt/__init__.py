"""The line where the user types: keys, toolbar, completion, style.

Start with `session`. Imports prompt_toolkit.
"""
