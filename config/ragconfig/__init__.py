"""Every default value and prompt text, and the loader that layers settings over them.

Start with `settings`; `ranges.toml` has the allowed range of each number, `home` finds the folders, `keys`
reads secrets and `redaction` keeps them out of logs. `prompts` has the prompts of the chat, and in subfolders
those of the server, `roles` texts that follow the system prompt; `small_talk.toml` the chat's fixed replies,
`words.toml` function words and general words by language, `views.toml` how lists and outlines are asked for,
`followups.toml` how a question refers to earlier ones; `servers` recipes for other MCP servers.
`repository` finds and creates a repository's own memory. Imports `ragcommon` only.
"""
