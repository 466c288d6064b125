"""The server's face: what the memory offers over MCP. Thin adapters on `service`, called in process.

Start with `server.make_server`; `toolsets` holds the tools, `errors` turns the memory's errors into MCP's.
"""
