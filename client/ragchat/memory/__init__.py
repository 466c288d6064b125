"""The client of the memory: typed calls to the server, and the server's process.

Start with `client`; `process` has the command and the environment of the server, `supervisor` restarts it.
"""
