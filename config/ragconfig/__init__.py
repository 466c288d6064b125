"""Every default value and prompt text, as commented TOML and Markdown, and nothing else."""
