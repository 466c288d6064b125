"""Every default value and prompt text, the loader that layers settings over them, and what both programs
need to read files safely.

Start with `settings`; `ranges.toml` holds the allowed range of each number, `home` the folders. `prompts` has
the prompts of the chat, and in its folders those that the server offers; `small_talk.toml` the chat's fixed
replies. `servers` has recipes for other MCP servers, `hosts` the settings with which other MCP hosts add
ours. `repository` finds and makes a repository's own memory, `running` finds servers that run already.
`files` reads the user's files; `text_rules` holds what both programs know about text; `redaction` keeps
secrets out of logs; `wal` and `readable` open SQLite files. Imports none of the other packages.
"""
