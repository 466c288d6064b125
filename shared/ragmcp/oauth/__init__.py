"""Authorization for servers over HTTP: OAuth 2.1 as the specification of 2026-07-28 profiles it.

`authorization.OAuth` adds the token to requests and renews it; `discovery` finds the authorization server,
`registration` makes us known to it, `grants` are the ways to a token. `store` keeps what was granted,
`redirect` waits for the browser. Imports `http`, which does not import it. Source: basic/authorization.
"""
