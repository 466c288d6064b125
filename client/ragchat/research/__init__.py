"""A cited report on a question, from memory and the other servers.

Start with `research`. With a model, `plan` divides the question, `search` asks memory, `reading` lets the
model quote what answers it and call tools for more (`evidence`), and `checking` compares each claim of the
report with its sources. Without a model, or when the tokens or the time are used up, `listing` lists the
findings. `state` keeps what was found for a later run; `requests` are those to the model.

This folder imports `turn`, `offline` and `llm`; `ragchat.conversation` imports it, and
`commands` its types.
"""
