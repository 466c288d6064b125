"""What the command line and the page both show of the set-up: settings, files, checks, the block for hosts.

Neither imports the other. `shown` has the settings and files, `checks` what `ragchat doctor` checks, and
`host_block` the block that adds this memory to another MCP host.
"""
