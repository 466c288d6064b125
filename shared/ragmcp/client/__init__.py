"""What a client does: handshake, calls, lists, subscriptions, input for the server.

Start with `features.Client`; `core` negotiates the era and gives a server the input that it requires. Imports
neither `server` nor a transport.
"""
