"""The client of the memory: typed calls to the server, and the server's process.

Start with `client`, whose results are in `types` and `symbols`; `answers` maps the errors of the server.
`process` has the command and the environment of the server, which `ragchat.servers.supervisor` restarts;
`running` uses one that runs already. `repository` chooses the memory of a whole repository. `matching` finds
the documents that a user's words mean; `history` puts undo into sentences.
"""
