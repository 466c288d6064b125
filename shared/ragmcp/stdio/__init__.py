"""MCP over pipes: our own standard streams, and those of a server that we start.

Start with `serve` (`serve_stdio`) and `connect` (`open_stdio`). `process` owns a child process; `opening`
chooses between the two forms of `pipes`: `polled` (POSIX) and `threaded`.
"""
