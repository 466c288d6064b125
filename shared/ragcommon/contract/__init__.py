"""What the memory server answers and the chat reads: the results of tools, a module for each feature. Pure.

Fields are added at the end with a default, never renamed or removed: a reader ignores fields that it does not
know, and fills in those that an older server does not send. The docstrings of the structs are part of the
tools' output schemas.
"""
