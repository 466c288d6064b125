"""From files to documents: walking folders, reading files, and the background jobs that load them.

Start with `ingestions`, the jobs, and `loading`, the work of one job. `sources` are the folders to keep in
sync, `walking` finds files, `gitignore` excludes some of them, `reading` turns a file into text, and
`parsing` runs the parsers in `formats` in worker processes. Knows no MCP.
"""
