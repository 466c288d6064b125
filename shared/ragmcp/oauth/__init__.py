"""Authorization for servers over HTTP: the OAuth 2.1 profile of the specification of 2026-07-28.

`authorization.OAuth` adds the token to requests and renews it; `discovery` finds the authorization server,
`registration` registers the client, `grants` obtains tokens. `store` keeps tokens and registrations,
`redirect` waits for the browser. `bearer` is the server's half: the tokens of requests. Imports `http`, which
does not import it. Source: basic/authorization.
"""
