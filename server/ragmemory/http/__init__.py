"""The memory over HTTP, around `ragmcp`'s endpoint. Only `ragmemory http` imports it.

Start with `serving`; `routes` lists the paths, `access` decides which clients may connect, `listening` limits
connections, `page` is for browsers.
"""
