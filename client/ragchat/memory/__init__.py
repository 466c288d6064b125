"""The client of the memory's tools. It knows neither processes nor addresses: see `ragchat.servers.memory`.

Start with `client`, whose results are in `ragcommon.contract`; `answers` decodes them and maps the errors of
the server. `matching` finds the documents that a user's words mean; `history` puts undo into sentences;
`transfer` reads and writes exports. `types` are texts and answers that other servers give as well.
"""
