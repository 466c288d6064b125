"""From texts to stored chunks with embeddings.

Start with `writer`, the entry point, which commits in batches (`write_queue`). `documents` validates the
input, `preparation` splits it into chunks (`chunking`, `blocks`) and embeds them. Knows no MCP.
"""
