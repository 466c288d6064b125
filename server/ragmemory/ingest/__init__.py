"""From texts to stored chunks with embeddings.

Start with `write_queue`, which every document passes. `documents` validates what a client sent, `preparation`
cuts it into chunks (`chunking`, `blocks`) and embeds them. Knows no MCP.
"""
