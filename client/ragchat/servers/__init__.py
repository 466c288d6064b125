"""MCP servers, memory included: their configuration, connections and permissions.

`manager` owns all `managed` servers, which `supervisor` restarts: `memory`, and a `connection` for each
server in the files that `configs` reads (`jsonc` strips comments). `tools` are offered to a model, `offers`
(resources and prompts) to the user; `prompts` are filled in here. `asking` handles requests to the user, with
`forms` and `visits`, while a `clock` pauses. `permissions` and `login` keep the user's decisions and tokens
in `private_json`. `recipes` configure popular servers, `imports` finds those of other hosts. Imports the
client of the memory's tools; knows neither turns nor the screen.
"""
