"""Language models: selection, requests, errors and token estimates.

Start with `selection` (which model) or `client` (a request and its stream). This folder knows nothing of
conversations, prompts or memory.
"""
