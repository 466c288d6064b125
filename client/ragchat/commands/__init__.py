"""The commands, one module for each group.

A command is a function or coroutine `(run: Invocation) -> exit code`, or None for 0. It prints through
`run.console`. Start with `invocation`. Only `ragchat.cli` imports this folder, which imports all others.
"""
