"""Files into memory: walking folders, reading texts, sending them.

Start with `load`; `files` walks, `gitignore` says what to leave out, `decoding` turns bytes into text.
"""
