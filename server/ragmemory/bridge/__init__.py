"""`ragmemory bridge`: a server on stdio that passes all messages on to a server over HTTP.

Start with `serving`; `host` reads the host's messages, `spawned` starts a server if none answers.
"""
