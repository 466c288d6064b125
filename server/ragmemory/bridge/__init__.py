"""`ragmemory bridge`: a server on stdio that passes all messages on to a server over HTTP.

Start with `serving`, which starts a server if none answers; `host` reads the host's messages.
"""
