"""A cited report on a question, from memory and the other servers.

Start with `research`. With a model, `plan` splits the question into sub-questions, `search` fuses rankings,
`reading` lets the model quote evidence and call tools for more (`evidence`), and `checking` compares each
claim of the report with its sources. Without a model, or when the tokens or the time are used up, `listing`
lists the findings. `state` saves progress for a later run; `requests` are model requests within a token
limit.

This folder imports `turn`, `offline` and `llm`; `ragchat.conversation` imports it, and `commands` its types.
"""
