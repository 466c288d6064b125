"""The memory over HTTP, around `ragmcp`'s endpoint. Only `ragmemory http` imports it.

Start with `serving`; `routes` lists the paths and guards them with `ragmcp.http.access`, `rate` limits
requests and `ragcommon.listening` connections, `page` is for browsers, `health` for load balancers.
`memories` serves the named memories, and `issuer` checks the tokens of an identity provider.
"""
