"""One turn: retrieval, prompt, generation, tools, citations.

Start with `turn`; `generation` asks the model and runs its tool calls, `citations` checks its answer. This
folder imports `offline`, `llm` and `memory`; only `ragchat.app` imports it, and the user interface its types.
"""
