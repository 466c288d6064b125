"""The line where the user types: keys, toolbar, and what is typed while an answer streams.

Start with `session`; `type_ahead` keeps early keys for the next prompt. Imports prompt_toolkit.
"""
