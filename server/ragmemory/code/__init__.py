"""Source code: syntax trees, symbols, and queries about them.

Imports the store, but no MCP. Start with `syntax`, which parses the languages of `text.languages`;
`references` finds the uses of a name in a file, `files` parses and caches files, `tracing` follows names
across files, and `service` is the interface. `ingest.code` splits source code into chunks.
"""
