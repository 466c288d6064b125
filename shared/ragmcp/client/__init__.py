"""What a client does: handshake, calls, lists and their cache, notifications, tasks.

Start with `client.Client`; `handshake` finds out which era the server speaks.
"""
