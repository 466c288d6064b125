"""Text to chunks to vectors to the store.

Start with `write_queue`, which every document passes; `preparation` cuts (`chunking`, `blocks`) and embeds,
`documents` checks what a client sent. Knows no MCP.
"""
