"""The client of the memory: typed calls to the server, and the server's process.

Start with `client`, whose results are in `types` and `symbols`; `answers` maps the errors of the server.
`server` is the connection, one of those that `ragchat.servers.manager` owns: to a process of our own, whose
command and environment are in `process`, or to a server that runs already, which `running` finds.
`repository` chooses the memory of a whole repository. `matching` finds the documents that a user's words
mean; `history` puts undo into sentences.
"""
