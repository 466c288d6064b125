"""Source code: its languages, syntax trees and symbols, and the answers about them.

Imports the store and the jobs of `files`, no MCP. Start with `languages`, then `syntax`, which parses;
`service` answers. Chunking by definitions is in `ingest.code`.
"""
