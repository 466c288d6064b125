"""What is shown: answers as they stream, Markdown, sources, /why, progress.

Start with `answer`. Imports rich.
"""
