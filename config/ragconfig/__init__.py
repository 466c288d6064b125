"""Every default value and prompt text, and the loader that layers settings over them.

Start with `settings`; `ranges.toml` holds the allowed range of each number, `home` the folders, `keys` reads
secrets and `redaction` keeps them out of logs. `prompts` has the prompts of the chat, and in its folders
those that the server offers; `small_talk.toml` the chat's fixed replies, `words.toml` lists of words
by what they do in a question; `servers` recipes for other MCP servers. `repository` finds and makes a
repository's own memory, which a setting may name. Imports `ragcommon` only.
"""
