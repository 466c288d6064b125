"""What both programs need that is neither MCP nor configuration. Imports no other package.

`errors` has the base of all errors; `files` reads and writes the user's files, `sqlite` opens databases,
`text` knows Markdown's lines and the places in documents. `hosts` has the settings with which other MCP hosts
add the memory, `server_note` how a running server is found, `listening` its socket and the limits on its
connections, `peer` whose they are, `streams` what a process needs of its streams, `memory_limit` ends a
process that takes too much memory, `completion` completes the command line in a shell, `concurrency` does
work at the same time. `contract` has the results that the memory server sends and the chat reads.
"""
