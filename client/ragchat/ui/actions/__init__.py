"""What the slash commands do, one file for a group of them: coroutines of (context, argument)."""
