"""The line where the user types: keys and toolbar.

Start with `session`. Imports prompt_toolkit.
"""
