"""What a client does: handshake, calls, lists and their cache, notifications, tasks.

Start with `client.Client`; `core` finds out which era the server speaks, `rounds` gives the input it wants.
"""
