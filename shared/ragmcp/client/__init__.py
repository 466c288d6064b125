"""What a client does: handshake, calls, lists, subscriptions, input for the server.

Start with `client.Client`; `core` finds out which era the server speaks, and gives the input it wants.
"""
