"""The slash commands: a table, and the actions behind it.

Start with `table`.
"""
