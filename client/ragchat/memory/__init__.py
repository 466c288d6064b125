"""The memory as the chat sees it: the server process that it owns, and the calls to it.

Start with `client`; `process` says how the server is started.
"""
