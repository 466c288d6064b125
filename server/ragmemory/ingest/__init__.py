"""From texts to stored chunks with embeddings.

Start with `writer`, which every document passes, in batches of `write_queue`. `documents` validates what a
client sent, `preparation` cuts it into chunks (`chunking`, `blocks`) and embeds them. Knows no MCP.
"""
