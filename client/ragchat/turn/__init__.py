"""One turn: retrieval, prompt, generation, tools, citations.

Start with `turn`; `generation` talks to the model, `citations` checks what it wrote.
"""
