"""From files to documents: walking folders, reading files, and the background jobs that load them.

Start with `ingestions`, the jobs, and `loading`, the work of one. `sources` are the folders that memory is
kept in step with, `walking` finds the files, `gitignore` excludes some of them, `reading` turns one into
text, and `parsing` runs the parsers of other `formats` in worker processes. Knows no MCP.
"""
