"""From files to documents: walking folders, reading files, and the background jobs that load them.

Start with `ingestions`. `walking` finds the files, `gitignore` excludes some of them, `reading` turns one
into text. Knows no MCP.
"""
