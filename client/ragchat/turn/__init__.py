"""One turn: retrieval, prompt, generation, tools, citations.

Start with `turn`. `followup` makes the query, `retrieval` asks memory, `grounding` judges what was found.
With a model, `generation` asks it and runs its tool calls, after their `approval`; `citations` and `facts`
check its answer, and `rewriting` asks it for other wordings. Without one, `offline` quotes memory, and
`overviews` answers with lists, outlines and comparisons.

This folder imports `offline`, `llm` and `memory`; only `ragchat.app` and `research` import it, and the user
interface its types.
"""
