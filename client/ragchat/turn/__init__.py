"""One turn: retrieval, prompt, generation, tools, citations.

Start with `turn`. `topics` and `followup` make the query, `retrieval` asks memory, `grounding` judges what
was found. With a model, `generation` builds the prompt and checks the answer; `rounds` asks it and runs its
tool calls after their `approval`; `rewriting` asks it for other wordings. Without one, `offline` quotes
memory, and `views` answers with lists and outlines. `types` is what is kept of a turn, `events` what is shown
of it.

This folder imports `grounding`, `offline`, `llm`, `memory` and `servers`; `ragchat.conversation` and
`research` import it, and `sessions` and the user interface its types.
"""
