"""The typed client of the memory server's tools; `ragchat.servers.memory` starts and finds the server.

Start with `client`, whose results are in `ragcommon.contract`; `answers` decodes them and maps server errors.
`matching` resolves the user's names to documents; `history` describes undo in sentences; `transfer` reads and
writes exports. `types` are results that other servers return as well.
"""
