"""The memory over MCP: thin adapters on `service`, called in process.

Start with `server.make_server`. `toolsets` holds the tools, `resources` the documents as resources, `errors`
maps the memory's errors to MCP's.
"""
