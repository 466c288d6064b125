"""Source code: its syntax trees and symbols, and the answers about them.

Imports the store, and no MCP. Start with `syntax`, which parses the languages of `text.languages`;
`references` finds the uses of a name in a file, `files` parses those of a memory, `tracing` follows names
through them, and `service` answers. `ingest.code` splits source code into chunks.
"""
