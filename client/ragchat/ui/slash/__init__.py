"""The slash commands: a table, the actions it names, and completion.

Start with `table`. Each action gets a `ChatContext` and the text after the command's name.
"""
