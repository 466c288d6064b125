"""From files to documents: walking folders, reading files, and the background jobs that load them.

Start with `ingestions`. `sources` are the folders that memory is kept in step with, `walking` finds the
files, `gitignore` excludes some of them, and `reading` turns one into text. Knows no MCP.
"""
