"""MCP servers: memory and the others, their connections, and what the user allows them.

`manager` owns all connections, each a `managed` server that `supervisor` restarts: that of `memory`, and the
others, each a `connection`. `configs` reads the files that name these, some of which are `jsonc`. `tools` are
what they offer to a model, `offers` what they offer to the user, `asking` what they ask of the user, with
`forms` and `visits`, in time that a `clock` does not count. `watching` tells the user of changes.
`permissions` is what the user has allowed for good, and `login` lets the user log in; both keep it in
`private_json`. `recipes` are servers that many users want, `imports` those of other hosts. Imports the client
of the memory's tools; knows neither turns nor the screen.
"""
