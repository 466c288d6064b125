"""Other MCP servers beside memory: which ones there are, their connections, and what the user allows them.

`configs` reads the files that name them, `manager` owns all connections, each a `connection`; `tools` are
what they offer to a model. `permissions` is what the user has allowed. Knows neither turns nor the screen.
"""
