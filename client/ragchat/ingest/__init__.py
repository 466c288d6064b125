"""Files into memory: walking folders, decoding files, loading texts.

Start with `loading`. `walking` finds the files, `gitignore` excludes some of them, `decoding` turns bytes
into text, `report` holds the outcome.
"""
